package ttlchange

import "github.com/ebbdb/ebb/internal/ttl/policy"

// Graces decides which graces a collection's TTLs have after a change. When a TTL is made or shortened in a collection that has documents,
// what is due by it at that instant is spared for a while (policy.Grace), so that a mistake can be taken back. The grace is kept in the
// catalogue, beside the index; what becomes due later is not part of it. Commands do not mind it: what they delete of what is hidden,
// they delete.
type Graces struct {
	Now           int64
	Before, After policy.Rules
	// Renews says which rules get a grace though they were not tightened; nil for none.
	Renews func(was, rule *policy.Rule) bool
	// End is when a grace ends.
	End func(policy.Grace) int64
	// Fresh is the grace of a TTL that is changed now.
	Fresh func() (policy.Grace, error)
}

// Decide is the graces by the numbers of the indexes.
func (g *Graces) Decide() (map[uint32]policy.Grace, error) {
	graces := map[uint32]policy.Grace{}
	for i := range g.After.All() {
		rule := &g.After.All()[i]
		grace, err := g.of(rule, g.Before.Namesake(rule))
		if err != nil {
			return nil, err
		}
		if !grace.IsZero() {
			graces[rule.IndexID()] = grace
		}
	}
	return graces, nil
}

// of is the grace of a rule that was another before, or nil.
func (g *Graces) of(rule, was *policy.Rule) (grace policy.Grace, err error) {
	if was != nil && g.Now < g.End(was.Grace) {
		grace = was.Grace
	}
	switch {
	case was == nil || rule.IsTighter(was) || g.Renews != nil && g.Renews(was, rule):
		fresh, err := g.Fresh()
		if err != nil || fresh.IsZero() {
			return grace, err
		}
		if end := g.End(grace); end > fresh.Until {
			return policy.Grace{At: g.Now, Until: end, AsSleep: grace.AsSleep}, nil
		}
		return fresh, nil
	case !grace.IsZero() && was.IsLoosened(g.After, false):
		return policy.Grace{At: g.Now, Until: g.End(grace), AsSleep: grace.AsSleep}, nil // what is due still waits
	}
	return grace, nil
}
