package privilege

// Privilege is actions on a resource.
type Privilege struct {
	Resource Resource
	Actions  Actions
}

// On is the privilege to do that on a resource.
func On(r Resource, as ...Action) Privilege { return Privilege{r, ActionsOf(as...)} }

// Grants is all that somebody may do. The zero value is nothing. It does not change once others see it.
type Grants struct {
	at    map[Resource]Actions
	order []Resource
}

// Add adds a privilege.
func (g *Grants) Add(p Privilege) {
	if g.at == nil {
		g.at = map[Resource]Actions{}
	}
	have, ok := g.at[p.Resource]
	if !ok {
		g.order = append(g.order, p.Resource)
	}
	have.AddAll(p.Actions)
	g.at[p.Resource] = have
}

// Privileges are all of them, a resource once, in the order in which they came.
func (g *Grants) Privileges() []Privilege {
	if g == nil {
		return nil
	}
	out := make([]Privilege, 0, len(g.order))
	for _, r := range g.order {
		out = append(out, Privilege{r, g.at[r]})
	}
	return out
}

// Allows says whether the action may be done on the resource: a cluster, a database, or a namespace.
func (g *Grants) Allows(r Resource, a Action) bool {
	if g == nil {
		return false
	}
	var room [maxCovering]Resource
	for _, pattern := range r.covering(room[:0]) {
		if as, ok := g.at[pattern]; ok && as.Has(a) {
			return true
		}
	}
	return false
}

// Includes says whether all of the privilege is granted, be it by several grants.
func (g *Grants) Includes(p Privilege) bool {
	if g == nil {
		return p.Actions.IsEmpty()
	}
	left := p.Actions
	var room [maxCovering]Resource
	for _, pattern := range p.Resource.covering(room[:0]) {
		left.Remove(g.at[pattern])
	}
	return left.IsEmpty()
}

// AllowsSomething says whether any action may be done on the resource.
func (g *Grants) AllowsSomething(r Resource) bool {
	if g == nil {
		return false
	}
	var room [maxCovering]Resource
	for _, pattern := range r.covering(room[:0]) {
		if as := g.at[pattern]; !as.IsEmpty() {
			return true
		}
	}
	return false
}

// AllowsIn says whether any action may be done on the database, or on anything that may be in it.
func (g *Grants) AllowsIn(db string) bool {
	if g == nil {
		return false
	}
	for r, as := range g.at {
		if !as.IsEmpty() && r.mayBeIn(db) {
			return true
		}
	}
	return false
}
