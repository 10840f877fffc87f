package planner

import (
	"github.com/ebbdb/ebb/internal/bson"
	"github.com/ebbdb/ebb/internal/match"
)

// TextMatch holds the documents of its child, a TextOr or a Fetch, against a search: its phrases and negated terms.
type TextMatch struct {
	Child Node
	Index Index
	Text  *match.Text
	// Prefix are the values of the fields in front of the index's text.
	Prefix bson.Doc
}

// Stage implements Node.
func (*TextMatch) Stage() string { return "TEXT_MATCH" }

// Children implements Node.
func (n *TextMatch) Children() []Node { return []Node{n.Child} }

// Describe implements Node.
func (n *TextMatch) Describe(b *bson.Builder) {
	b.Document("indexPrefix", n.Prefix).String("indexName", n.Index.Name)
}

// TextOr gives each record that any of its inputs, a scan a term, gives, once, with its score.
type TextOr struct{ Inputs []Node }

// Stage implements Node.
func (*TextOr) Stage() string { return "TEXT_OR" }

// Children implements Node.
func (n *TextOr) Children() []Node { return n.Inputs }

// Describe implements Node.
func (*TextOr) Describe(*bson.Builder) {}
