package planner

import "github.com/ebbdb/ebb/internal/bson"

// DistinctScan walks spans of an index and gives one key for each value of the fields up to Field, the others it leaps over.
type DistinctScan struct {
	Index    Index
	Bounds   []Intervals
	Ranges   []Range
	Backward bool
	// Field is the place in the key pattern of the field whose values are wanted.
	Field int
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
