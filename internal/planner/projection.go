package planner

import (
	"strings"

	"github.com/ebbdb/ebb/internal/bson"
)

// Projection gives documents the shape that Spec asks for.
type Projection struct {
	Child Node
	Spec  bson.Doc
	// Covered says that the documents are made of an index's keys, without being fetched.
	Covered bool
	// Fields are the paths that are read of a covered one.
	Fields []string
}

// Stage implements Node: it tells projections that take or leave fields of the first level from all others.
func (n *Projection) Stage() string {
	if n.Covered {
		return "PROJECTION_COVERED"
	}
	for it := n.Spec.Iter(); it.Next(); {
		v := it.Value()
		if strings.Contains(it.Key(), ".") || v.Type != bson.TypeBool && !v.IsNumber() {
			return "PROJECTION_DEFAULT"
		}
	}
	return "PROJECTION_SIMPLE"
}

// Children implements Node.
func (n *Projection) Children() []Node { return []Node{n.Child} }

// Describe implements Node.
func (n *Projection) Describe(b *bson.Builder) { b.Document("transformBy", n.Spec) }

// ReturnKey gives the index keys by which the documents of its child were found.
type ReturnKey struct{ Child Node }

// Stage implements Node.
func (*ReturnKey) Stage() string { return "RETURN_KEY" }

// Children implements Node.
func (n *ReturnKey) Children() []Node { return []Node{n.Child} }

// Describe implements Node.
func (*ReturnKey) Describe(*bson.Builder) {}
