package planner

import (
	"github.com/ebbdb/ebb/internal/bson"
	"github.com/ebbdb/ebb/internal/match"
)

// Fetch gets the documents of the record ids that its child gives.
type Fetch struct {
	Child  Node
	Filter *match.Filter
}

// Stage implements Node.
func (*Fetch) Stage() string { return "FETCH" }

// Children implements Node.
func (n *Fetch) Children() []Node { return []Node{n.Child} }

// Describe implements Node.
func (*Fetch) Describe(*bson.Builder) {}
