package planner

import (
	"math"
	"slices"

	"github.com/ebbdb/ebb/internal/bson"
	"github.com/ebbdb/ebb/internal/index"
	"github.com/ebbdb/ebb/internal/match"
)

// filterOf is the filter that all of the nodes make, nil for none. Where that is the whole filter of the query, it is that.
func (p *planning) filterOf(nodes []match.Node) *match.Filter {
	switch {
	case len(nodes) == 0:
		return nil
	case slices.Equal(nodes, conjuncts(p.root)):
		return p.filter
	case len(nodes) == 1:
		return &match.Filter{Root: nodes[0], Collation: p.q.Collation}
	}
	return &match.Filter{Root: &match.And{Children: nodes}, Collation: p.q.Collation}
}

// finish makes a plan of an access: it fetches what is needed, holds it against what is left of the filter, and sorts.
func (p *planning) finish(a access) *Plan {
	if s, ok := a.node.(*IndexScan); ok && len(s.Ranges) == 0 {
		plan := Nothing()
		plan.score = a.score
		return plan
	}
	ordered := p.ordered(&a)
	var rest []match.Node
	if p.root != nil {
		rest = unseen(a, conjuncts(p.root))
	}
	covered := len(rest) == 0 && p.covers(a.node)
	if !covered && (!givesDocuments(a.node) || len(rest) > 0) {
		a.node = &Fetch{Child: a.node, Filter: p.filterOf(rest)}
	}
	if covered {
		fields := p.q.Fields
		if !ordered {
			fields = append(slices.Clone(fields), paths(p.q.Order)...)
		}
		a.node = &Projection{Child: a.node, Spec: p.q.Projection, Covered: true, Fields: fields}
	}
	plan := p.plan(a.node, ordered)
	plan.score = a.score
	return plan
}

// ordered says whether a gives the query's order, perhaps once its lists of values are taken apart.
func (p *planning) ordered(a *access) bool {
	if len(p.q.Order) == 0 {
		return true
	}
	switch n := a.node.(type) {
	case *SortMerge:
		return true
	case *IndexScan:
		if n.follow(p.q) {
			return true
		}
	}
	merged, ok := p.merge([]Node{a.node})
	if ok {
		a.node = merged
	}
	return ok
}

// covers says whether the keys that n gives tell all that is read of the documents.
func (p *planning) covers(n Node) bool {
	if p.q.Fields == nil || p.c.Hides {
		return false
	}
	switch n := n.(type) {
	case *IndexScan:
		return n.Index.tells(p.q.Fields) && !n.asksForNull(p.q.Fields) && (len(p.q.Order) == 0 || n.follow(p.q) || n.Index.tells(paths(p.q.Order)))
	case *Or, *SortMerge:
		return false
	}
	return false
}

// asksForNull says whether one of the fields is held to null: its documents have null there, or nothing, which keys do not tell.
func (n *IndexScan) asksForNull(fields []string) bool {
	for _, path := range fields {
		b := n.Bounds[n.Index.field(path)]
		if !b.IsAll() && slices.ContainsFunc(b, func(i Interval) bool { return i.IsPoint() && i.Low.Type == bson.TypeNull }) {
			return true
		}
	}
	return false
}

func paths(order []OrderField) (out []string) {
	for _, f := range order {
		out = append(out, f.Path)
	}
	return out
}

// tells says whether the fields are all had back from x's keys, and whether a document has one key only.
func (x Index) tells(fields []string) bool {
	for _, path := range fields {
		i := slices.IndexFunc(x.Fields, func(f index.Field) bool { return f.Path == path })
		if i < 0 || !x.restores(i) {
			return false
		}
	}
	return true
}

// plan puts on top of n what the query wants besides documents: order and counts.
func (p *planning) plan(n Node, ordered bool) *Plan {
	plan := &Plan{Filter: p.filter, Ordered: ordered, sorts: !ordered}
	if !ordered {
		if p.q.Sort == nil {
			return &Plan{Root: n, Filter: p.filter, sorts: true}
		}
		n = &Sort{Child: n, Pattern: p.q.Sort, Limit: p.sortLimit(), Memory: p.q.Memory, IDs: p.q.IDs}
		plan.Ordered = true
	}
	plan.Root, plan.Counted = p.counted(n), p.q.Counts
	return plan
}

// sortLimit is how many a sort has to keep, 0 for all.
func (p *planning) sortLimit() int64 {
	if p.q.Counts && p.q.Limit > 0 && p.q.Skip <= math.MaxInt64-p.q.Limit {
		return p.q.Skip + p.q.Limit
	}
	return p.q.SortLimit
}

// skipped skips, before anything is fetched where that is for the documents alone. What is hidden is found out by fetching.
func (p *planning) skipped(n Node) Node {
	if f, ok := n.(*Fetch); ok && f.Filter == nil && !p.c.Hides {
		return &Fetch{Child: &Skip{Child: f.Child, N: p.q.Skip}}
	}
	return &Skip{Child: n, N: p.q.Skip}
}

// counted skips and limits, unless a sort has done that.
func (p *planning) counted(n Node) Node {
	if !p.q.Counts {
		return n
	}
	s, _ := n.(*Sort)
	sorted := s != nil && s.Limit > 0
	if p.q.Skip > 0 {
		n = p.skipped(n)
	}
	if p.q.Limit > 0 && !sorted {
		n = &Limit{Child: n, N: p.q.Limit}
	}
	return n
}
