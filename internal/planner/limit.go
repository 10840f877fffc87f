package planner

import "github.com/ebbdb/ebb/internal/bson"

// Limit gives the first N of what its child gives.
type Limit struct {
	Child Node
	N     int64
}

// Stage implements Node.
func (*Limit) Stage() string { return "LIMIT" }

// Children implements Node.
func (n *Limit) Children() []Node { return []Node{n.Child} }

// Describe implements Node.
func (n *Limit) Describe(b *bson.Builder) { b.Number("limitAmount", n.N) }
