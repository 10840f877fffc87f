package planner

import (
	"github.com/ebbdb/ebb/internal/bson"
	"github.com/ebbdb/ebb/internal/match"
)

// CollScan looks at every document, in natural order or backwards.
type CollScan struct {
	Filter   *match.Filter
	Backward bool
}

// Stage implements Node.
func (*CollScan) Stage() string { return "COLLSCAN" }

// Children implements Node.
func (*CollScan) Children() []Node { return nil }

// Describe implements Node.
func (n *CollScan) Describe(b *bson.Builder) { b.String("direction", direction(n.Backward)) }
