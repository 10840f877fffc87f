package planner

import (
	"cmp"
	"slices"

	"github.com/ebbdb/ebb/internal/bson"
	"github.com/ebbdb/ebb/internal/collation"
	"github.com/ebbdb/ebb/internal/index"
)

// DistinctScan walks spans of an index and gives one key for each value of the fields up to Field, the others it leaps over.
type DistinctScan struct {
	Index    Index
	Bounds   []Intervals
	Ranges   []Range
	Backward bool
	// Field is the place in the key pattern of the field whose values are wanted.
	Field int
	// OneNull says that a missing field is as good as null, as to a $group: over them it leaps, too.
	OneNull bool
	// Unwinds says that the field's keys are of elements of arrays, too, and that those are the values wanted.
	Unwinds bool
}

// Stage implements Node.
func (*DistinctScan) Stage() string { return "DISTINCT_SCAN" }

// Children implements Node.
func (*DistinctScan) Children() []Node { return nil }

// Describe implements Node.
func (n *DistinctScan) Describe(b *bson.Builder) {
	n.Index.describe(b)
	b.String("direction", direction(n.Backward))
	n.Index.describeBounds(b, n.Bounds, n.Backward)
}

// Distinct is the plan for the values that documents have at a path, q's only field: the first of the plans for q that can
// leap from value to value; ok is false when there is none. Without a filter it is a walk of the index in which the path
// comes first, and then of the one with the fewest fields. With unwinds arrays stand for their elements; then that index may
// have keys of arrays, which with a filter would leap over documents that have the same element and others.
func Distinct(c Collection, q Query, unwinds bool) (plan *Plan, ok bool, err error) {
	defer caught(&err)
	plans, err := Candidates(c, q)
	if err != nil {
		return nil, false, err
	}
	if (q.Filter == nil || isAlwaysTrue(q.Filter.Root)) && q.Hint.IsNullish() && len(q.Order) == 0 {
		plans = wholeIndexes(c, q, unwinds)
	}
	for _, p := range plans {
		if p.leap(q.Fields[0]) || p.unwinds() {
			return p, true, nil
		}
	}
	return nil, false, nil
}

// Firsts is the plan for the first document, in the order of q, for each value at the path by which that order begins; ok is
// false when no plan can leap to it. With lasts that order is the one asked for the other way round, which it is not where
// there are arrays: of them the least element counts in the one, the greatest in the other.
func Firsts(c Collection, q Query, path string, lasts bool) (plan *Plan, ok bool, err error) {
	if c.Hides { // the document of the key leapt to might not be there
		return nil, false, nil
	}
	plans, err := Candidates(c, q)
	if err != nil {
		return nil, false, err
	}
	for _, p := range plans {
		if p.leapToFirst(path) && !(lasts && find[*DistinctScan](p.Root).Index.IsMultikey()) {
			return p, true, nil
		}
	}
	return nil, false, nil
}

func (p *Plan) leapToFirst(path string) bool {
	if !p.Ordered {
		return false
	}
	if p.leap(path) {
		find[*DistinctScan](p.Root).OneNull = true
		return true
	}
	f, ok := p.Root.(*Fetch)
	if !ok || f.Filter != nil {
		return false
	}
	scan, ok := leaping(f.Child, path)
	if ok {
		scan.OneNull = true
		p.Root = &Fetch{Child: scan}
	}
	return ok
}

// wholeIndexes are the walks of all of an index that tells q's fields, the best first.
func wholeIndexes(c Collection, q Query, unwinds bool) (plans []*Plan) {
	p := &planning{c: c, q: q}
	path := q.Fields[0]
	indexes := slices.DeleteFunc(p.usable(), func(x Index) bool {
		return x.Sparse || x.Partial() != nil || x.field(path) < 0 || !collation.Equal(x.Collator(), q.Collation)
	})
	slices.SortStableFunc(indexes, func(a, b Index) int {
		return cmp.Or(cmp.Compare(a.field(path), b.field(path)), cmp.Compare(len(a.Fields), len(b.Fields)))
	})
	for _, x := range indexes {
		if unwinds && !c.Hides && x.unwinds(path) {
			plans = append(plans, p.unwound(x))
		} else {
			plans = append(plans, p.finish(access{node: whole(x)}))
		}
	}
	return plans
}

// unwinds says whether x begins with the path and has keys of elements of arrays at it.
func (x Index) unwinds(path string) bool {
	return x.ordered() && x.wild == nil && x.field(path) == 0 && x.multikey(0) != 0 && x.Collator() == nil && !hasPosition(path)
}

// unwound is a walk of x that leaps from element to element.
func (p *planning) unwound(x Index) *Plan {
	s := whole(x)
	scan := &DistinctScan{Index: x, Bounds: s.Bounds, Ranges: s.Ranges, Unwinds: true}
	return p.plan(&Projection{Child: scan, Spec: p.q.Projection, Covered: true, Fields: p.q.Fields}, true)
}

// unwinds says whether p leaps from element to element of arrays.
func (p *Plan) unwinds() bool {
	covered, ok := p.Root.(*Projection)
	if !ok {
		return false
	}
	scan, ok := covered.Child.(*DistinctScan)
	return ok && scan.Unwinds
}

// field is the place of path in x's key pattern, -1 when it is not there.
func (x Index) field(path string) int {
	return slices.IndexFunc(x.Fields, func(f index.Field) bool { return f.Path == path })
}

// leap makes a covered walk of an index leap from value to value at path, if it can.
func (p *Plan) leap(path string) bool {
	covered, ok := p.Root.(*Projection)
	if !ok || !covered.Covered {
		return false
	}
	scan, ok := leaping(covered.Child, path)
	if ok {
		p.Root = &Projection{Child: scan, Spec: covered.Spec, Covered: true, Fields: covered.Fields}
	}
	return ok
}

// leaping is n as a walk that leaps from value to value at path, when it is one of an index that has them.
func leaping(n Node, path string) (*DistinctScan, bool) {
	s, ok := n.(*IndexScan)
	if !ok || s.Filter != nil || s.Behind != nil || s.unusual() {
		return nil, false
	}
	i := s.Index.field(path)
	if i < 0 || s.Index.multikey(i) != 0 || hasPosition(path) {
		return nil, false
	}
	return &DistinctScan{Index: s.Index, Bounds: s.Bounds, Ranges: s.Ranges, Backward: s.Backward, Field: i}, true
}
