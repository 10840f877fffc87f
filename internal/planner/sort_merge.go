package planner

import "github.com/ebbdb/ebb/internal/bson"

// SortMerge merges inputs that each come in the order of Pattern, and gives each record once.
type SortMerge struct {
	Inputs  []Node
	Pattern bson.Doc
}

// Stage implements Node.
func (*SortMerge) Stage() string { return "SORT_MERGE" }

// Children implements Node.
func (n *SortMerge) Children() []Node { return n.Inputs }

// Describe implements Node.
func (n *SortMerge) Describe(b *bson.Builder) { b.Document("sortPattern", n.Pattern) }
