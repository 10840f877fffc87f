package fulltext

import "github.com/ebbdb/ebb/internal/fulltext/spec"

// compoundOperator combines others.
type compoundOperator struct {
	must, should, mustNot, filter []operator
	atLeast                       int
	tie                           *float64 // the best should clause counts, and this much of the others
}

func parseCompound(p *parser, a *spec.Reader) operator {
	c := &compoundOperator{}
	total, there := 0, false
	for _, clause := range []struct {
		name string
		to   *[]operator
	}{{"filter", &c.filter}, {"must", &c.must}, {"mustNot", &c.mustNot}, {"should", &c.should}} {
		list, ok := a.List(clause.name, true)
		there = there || ok
		for _, e := range list {
			*clause.to = append(*clause.to, p.operator(a.Inside(e.Path, e.Value)))
		}
		total += len(list)
	}
	if !there {
		a.Refuse("at least one of [filter, must, mustNot, should] must be present")
	}
	if total == 0 {
		a.Refuse("must have at least one clause")
	}
	p.affects(a)
	c.atLeast = a.Count("minimumShouldMatch", 0)
	switch {
	case !a.Has("minimumShouldMatch"):
	case !a.Has("should"):
		a.Refuse("should clause must not be empty when using minimumShouldMatch")
	case c.atLeast > len(c.should):
		a.Refuse("minimumShouldMatch cannot be greater than number of should clauses")
	}
	return c
}

// affects reads doesNotAffect: the facets that count as if the operator were not there.
func (p *parser) affects(a *spec.Reader) {
	if list, _ := a.List("doesNotAffect", true); len(list) > 0 {
		p.unaffected = append(p.unaffected, a.Strings("doesNotAffect")...)
	}
}

func (o *compoundOperator) resolve(r *resolver) (node, error) {
	c := &compound{slot: r.slot(), atLeast: o.atLeast, tie: o.tie}
	for _, clause := range []struct {
		from []operator
		to   *[]node
	}{{o.filter, &c.filter}, {o.must, &c.must}, {o.mustNot, &c.mustNot}, {o.should, &c.should}} {
		for _, each := range clause.from {
			n, err := each.resolve(r)
			if err != nil {
				return nil, err
			}
			*clause.to = append(*clause.to, n)
		}
	}
	return c, nil
}

// compound finds what all of must and filter find, none of mustNot, and so many of should.
type compound struct {
	slot                          int32
	must, should, mustNot, filter []node
	atLeast                       int
	tie                           *float64
}

func (n *compound) all() [][]node { return [][]node{n.must, n.should, n.mustNot, n.filter} }

func (n *compound) observe(counting bool) {
	for _, list := range n.all() {
		for _, each := range list {
			each.observe(counting)
		}
	}
}

func (n *compound) find(ev []evidence) ([]evidence, bool) {
	start := len(ev)
	ev = append(ev, evidence{slot: n.slot})
	for _, each := range n.filter {
		mark := len(ev)
		var ok bool
		if ev, ok = each.find(ev); !ok {
			return ev[:start], false
		}
		ev = ev[:mark]
	}
	for _, each := range n.mustNot {
		var ok bool
		if ev, ok = each.find(ev); ok {
			return ev[:start], false
		}
	}
	for _, each := range n.must {
		var ok bool
		if ev, ok = each.find(ev); !ok {
			return ev[:start], false
		}
	}
	found := 0
	for _, each := range n.should {
		var ok bool
		if ev, ok = each.find(ev); ok {
			found++
		}
	}
	least := n.atLeast
	if len(n.must) == 0 && len(n.filter) == 0 && len(n.should) > 0 {
		least = max(least, 1)
	}
	if found < least {
		return ev[:start], false
	}
	return ev, true
}

func (n *compound) score(c *cursor) (float64, *detail, bool) {
	if _, ok := c.next(n.slot); !ok {
		return 0, nil, false
	}
	total, best, parts := 0.0, 0.0, []*detail(nil)
	for _, list := range [][]node{n.must, n.should} {
		for _, each := range list {
			if score, d, ok := each.score(c); ok {
				total, best, parts = total+score, max(best, score), append(parts, d)
			}
		}
	}
	if n.tie != nil {
		score := best + *n.tie*(total-best)
		return score, c.detail(score, parts, "max plus %g times others of:", *n.tie), true
	}
	score, d := c.sum(total, parts)
	return score, d, true
}

func (n *compound) mark(f *textField, mark func(int)) {
	for _, list := range [][]node{n.must, n.should, n.filter} {
		for _, each := range list {
			each.mark(f, mark)
		}
	}
}
