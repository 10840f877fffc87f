package planner

import "github.com/ebbdb/ebb/internal/bson"

// AndSorted gives the records that all of its inputs give. Each of them comes in the order of record ids.
type AndSorted struct{ Inputs []Node }

// Stage implements Node.
func (*AndSorted) Stage() string { return "AND_SORTED" }

// Children implements Node.
func (n *AndSorted) Children() []Node { return n.Inputs }

// Describe implements Node.
func (*AndSorted) Describe(*bson.Builder) {}
