package planner

import "github.com/ebbdb/ebb/internal/bson"

// CountScan walks spans of an index and counts the records behind its keys, each once, without looking at them.
type CountScan struct {
	Index  Index
	Bounds []Intervals
	Ranges []Range
}

// Stage implements Node.
func (*CountScan) Stage() string { return "COUNT_SCAN" }

// Children implements Node.
func (*CountScan) Children() []Node { return nil }

// Describe implements Node.
func (n *CountScan) Describe(b *bson.Builder) {
	n.Index.describe(b)
	b.Object("indexBounds")
	for _, end := range [...]string{"startKey", "endKey"} {
		b.Object(end)
		for i, f := range n.Index.Fields {
			b.Value(f.Path, n.end(i, end == "endKey"))
		}
		b.End()
	}
	low, high := n.inclusive()
	b.Bool("startKeyInclusive", low).Bool("endKeyInclusive", high).End()
}

// end is where the i-th field begins or ends in the direction of the index.
func (n *CountScan) end(i int, last bool) bson.Value {
	s := n.Bounds[i]
	if n.Index.Fields[i].Descending != last {
		return s[len(s)-1].High
	}
	return s[0].Low
}

func (n *CountScan) inclusive() (low, high bool) {
	low, high = true, true
	for i, s := range n.Bounds {
		first, last := s[0].LowInclusive, s[len(s)-1].HighInclusive
		if n.Index.Fields[i].Descending {
			first, last = last, first
		}
		low, high = low && first, high && last
	}
	return low, high
}

// Counted is the tree root for somebody who only asks how many documents there are and reads nothing of them: one walk of
// neighbouring keys becomes a COUNT_SCAN. What else there is stays.
func Counted(root Node) Node {
	if p, ok := root.(*Projection); ok && p.Covered {
		root = p.Child
	}
	s, ok := root.(*IndexScan)
	if !ok || s.Filter != nil || s.Behind != nil || len(s.Ranges) != 1 || s.unusual() && s.Index.wild == nil {
		return root
	}
	return &CountScan{Index: s.Index, Bounds: s.Bounds, Ranges: s.Ranges}
}
