package planner

import (
	"math"
	"slices"

	"github.com/ebbdb/ebb/internal/bson"
	"github.com/ebbdb/ebb/internal/collation"
	"github.com/ebbdb/ebb/internal/index"
	"github.com/ebbdb/ebb/internal/mongoerr"
)

// records is the order of a clustered collection's records as an index.
func (p *planning) records() Index { return Index{Definition: p.c.Clustered} }

// bind holds s to the one span of records that has all that the query can want of _id; none is false when that is empty.
func (p *planning) bind(s *CollScan) (some bool) {
	x := p.records()
	bounds := p.boundsOf(x, 0, p.demands(p.root), nil, 0).bounds
	if p.q.Min != nil || p.q.Max != nil {
		bounds = intersect(x.compare, bounds, Intervals{between(p.q.Min, p.q.Max)})
	}
	if len(bounds) == 0 {
		return false
	}
	i, last := bounds[0], bounds[len(bounds)-1]
	i.High, i.HighInclusive = last.High, last.HighInclusive
	if (Intervals{i}).IsAll() {
		return true
	}
	if i.Low.Type == bson.TypeDouble && math.IsInf(i.Low.AsDouble(), -1) {
		i.Low = bson.Double(math.NaN()) // as MongoDB has all numbers begin
	}
	s.Span, s.Records, s.One = &i, span(x, 0, nil, i), i.IsPoint()
	return true
}

// between is from low on, before high, either of which may be nil.
func between(low, high bson.Doc) Interval {
	i := full
	if low != nil {
		i.Low = low.Lookup("_id")
	}
	if high != nil {
		i.High, i.HighInclusive = high.Lookup("_id"), false
	}
	return i
}

// inRecordOrder says whether the query's order is that of the records of a clustered collection, one way or the other.
func (p *planning) inRecordOrder() (ordered, backward bool) {
	q := p.q
	if p.c.Clustered == nil || len(q.Order) != 1 || q.Order[0].Path != "_id" || !collation.Equal(p.c.Collation, q.Collation) {
		return false, false
	}
	return true, q.Order[0].Descending
}

// withRecords adds the walk of a clustered collection's records to the plans, where it finds by _id or alone has the order.
func (p *planning) withRecords(plans []*Plan) []*Plan {
	walk := p.collScan(false)
	s, _ := bottom(walk.Root).(*CollScan)
	switch {
	case s == nil: // nothing can match
		walk.score = scoreNone
	case s.One:
		walk.score = scorePoint + scoreUnique
	case s.Span != nil:
		walk.score = scoreSpan + narrowness(Intervals{*s.Span})
	case len(p.q.Order) > 0 && !walk.sorts:
		walk.score = scoreOrder
	default:
		return plans
	}
	plans = append(plans, walk)
	slices.SortStableFunc(plans, func(a, b *Plan) int { return b.score - a.score })
	return plans[:min(len(plans), maxIndexedSolutions)]
}

// bottom is the leaf below nodes of one child each.
func bottom(n Node) Node {
	for len(n.Children()) == 1 {
		n = n.Children()[0]
	}
	return n
}

// hintsRecords says whether a hint names the order of a clustered collection's records.
func hintsRecords(x *index.Definition, hint bson.Value) bool {
	switch {
	case x == nil:
		return false
	case hint.Type == bson.TypeString:
		return hint.Str() == x.Name
	}
	return hint.Type == bson.TypeObject && bson.CompareDocs(hint.Doc(), x.Key, nil) == 0
}

// hintedRecords is the walk of a clustered collection's records that a hint asks for.
func (p *planning) hintedRecords() ([]*Plan, error) {
	x := p.records()
	for _, key := range []bson.Doc{p.q.Min, p.q.Max} {
		if key != nil && (x.checkKey(key) != nil || hasStrings(key.Lookup("_id")) && !collation.Equal(p.c.Collation, p.q.Collation)) {
			return nil, mongoerr.New(6137400, "The clustered index is not compatible with the values provided for min/max due to the query collation")
		}
	}
	if p.q.Min != nil && p.q.Max != nil && x.compare(p.q.Min.Lookup("_id"), p.q.Max.Lookup("_id")) >= 0 {
		return nil, mongoerr.New(6137401, "max() must be greater than min()")
	}
	return []*Plan{p.collScan(false)}, nil
}
