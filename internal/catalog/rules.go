package catalog

import "github.com/ebbdb/ebb/internal/ttl/policy"

// ExpiryRules are the rules by which documents of the collection expire.
func (c *Collection) ExpiryRules() policy.Rules {
	cell := int64(0)
	if c.IsTimeSeries() {
		cell = c.Options.TimeSeries.SpanSeconds
	}
	rules := policy.NewRules(c.Indexes, c.ownRule(cell), cell)
	for i := range rules.All() {
		rule := &rules.All()[i]
		rule.Grace = c.Graces[rule.IndexID()]
	}
	return rules
}

// ownRule is the rule that the collection's options give it; nil when they give none.
func (c *Collection) ownRule(cell int64) *policy.Rule {
	switch {
	case !c.Options.HasTTL:
	case c.IsClustered():
		r := policy.ForClustered(c.Options.ExpireAfterSeconds)
		return &r
	case c.IsTimeSeries():
		r := policy.ForSeries(c.Options.TimeSeries.TimeField, c.Options.ExpireAfterSeconds, cell)
		return &r
	}
	return nil
}
