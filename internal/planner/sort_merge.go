package planner

import (
	"github.com/ebbdb/ebb/internal/bson"
	"github.com/ebbdb/ebb/internal/collation"
)

// SortMerge merges inputs that each come in Order, and gives each record once.
type SortMerge struct {
	Inputs []Node
	Order  []OrderField
	// Collation compares strings.
	Collation *collation.Collation
}

// Stage implements Node.
func (*SortMerge) Stage() string { return "SORT_MERGE" }

// Children implements Node.
func (n *SortMerge) Children() []Node { return n.Inputs }

// Describe implements Node.
func (n *SortMerge) Describe(b *bson.Builder) {
	b.Object("sortPattern")
	for _, f := range n.Order {
		if f.Descending {
			b.Int32(f.Path, -1)
		} else {
			b.Int32(f.Path, 1)
		}
	}
	b.End()
}
