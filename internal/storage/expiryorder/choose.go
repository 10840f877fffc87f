package expiryorder

import (
	"slices"

	"github.com/ebbdb/ebb/internal/catalog"
	"github.com/ebbdb/ebb/internal/index"
	"github.com/ebbdb/ebb/internal/ttl/policy"
)

// New is the order of a collection in memory, without a histogram; nil for none.
func New(c *catalog.Collection, rules policy.Rules) *Order {
	if own, ok := rules.Own(); ok && own.Kind == policy.Clustered {
		return &Order{Collection: c.ID, Rule: own, Clustered: true}
	}
	if c.Order == nil {
		return nil
	}
	rule, ok := rules.ForIndexID(c.Order.Index)
	if !ok {
		return nil
	}
	return &Order{Collection: c.ID, Number: c.Order.Number, Rule: rule, Cell: c.Order.Cell}
}

// Choose is the order that a collection is to have: the one it has as long as its index is there, otherwise by its first TTL index;
// nil for none. old is what the collection was, nil when it is new; number is asked for the number of a new order.
func Choose(coll, old *catalog.Collection, number func() (uint32, error)) (*catalog.Order, error) {
	if coll.IsView() || coll.IsClustered() || coll.IsTimeSeries() || coll.Options.Capped {
		return nil, nil
	}
	if o := kept(coll, old); o != nil {
		return o, nil
	}
	for _, d := range coll.Indexes {
		if rule, ok := policy.ForIndex(d); ok && d.Built() {
			n, err := number()
			return &catalog.Order{Number: n, Index: d.ID, Cell: cellFor(&rule)}, err
		}
	}
	return nil, nil
}

// kept is the collection's order when the dates of the same index still decide: it may have been built anew.
func kept(coll, old *catalog.Collection) *catalog.Order {
	if coll.Order == nil || old == nil {
		return nil
	}
	before := old.IndexByID(coll.Order.Index)
	if before == nil {
		before = coll.IndexByID(coll.Order.Index)
	}
	i := slices.IndexFunc(coll.Indexes, func(d *index.Definition) bool {
		_, ok := policy.ForIndex(d)
		return ok && before != nil && (d.ID == coll.Order.Index || hasSameDates(d, before))
	})
	if i < 0 {
		return nil
	}
	rule, _ := policy.ForIndex(coll.Indexes[i])
	return &catalog.Order{Number: coll.Order.Number, Index: coll.Indexes[i].ID, Cell: max(coll.Order.Cell, cellFor(&rule))}
}

// cellFor is how wide the cells are that changed documents are placed in, where the rule orders; 0 where all places are exact.
func cellFor(rule *policy.Rule) int64 {
	if rule.Kind != policy.Modified {
		return 0
	}
	return CellFor(rule.Seconds)
}

// hasSameDates says whether two TTL indexes find the same dates in all documents.
func hasSameDates(a, b *index.Definition) bool {
	return a.Name == b.Name && a.Kind == b.Kind && a.Fields[0].Path == b.Fields[0].Path &&
		string(a.Spec.Lookup("partialFilterExpression").Data) == string(b.Spec.Lookup("partialFilterExpression").Data)
}
