package planner

import "github.com/ebbdb/ebb/internal/bson"

// Skip leaves out the first N of what its child gives.
type Skip struct {
	Child Node
	N     int64
}

// Stage implements Node.
func (*Skip) Stage() string { return "SKIP" }

// Children implements Node.
func (n *Skip) Children() []Node { return []Node{n.Child} }

// Describe implements Node.
func (n *Skip) Describe(b *bson.Builder) { b.Number("skipAmount", n.N) }
