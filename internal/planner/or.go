package planner

import (
	"github.com/ebbdb/ebb/internal/bson"
	"github.com/ebbdb/ebb/internal/match"
)

// Or gives what any of its inputs gives, one input after the other, each record once.
type Or struct {
	Inputs []Node
	Filter *match.Filter
}

// Stage implements Node.
func (*Or) Stage() string { return "OR" }

// Children implements Node.
func (n *Or) Children() []Node { return n.Inputs }

// Describe implements Node.
func (*Or) Describe(*bson.Builder) {}
