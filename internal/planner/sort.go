package planner

import (
	"github.com/ebbdb/ebb/internal/bson"
	"github.com/ebbdb/ebb/internal/sortpattern"
)

// Sort gives what its child gives in the order of Pattern, the first Limit only unless that is 0.
type Sort struct {
	Child   Node
	Pattern *sortpattern.Pattern
	Limit   int64
	// Memory is how many bytes it may hold.
	Memory int64
	// IDs says that the documents' record ids go through the sort, too.
	IDs bool
}

// Stage implements Node.
func (*Sort) Stage() string { return "SORT" }

// Children implements Node.
func (n *Sort) Children() []Node { return []Node{n.Child} }

// Describe implements Node.
func (n *Sort) Describe(b *bson.Builder) {
	b.Document("sortPattern", SortSpec(n.Pattern)).Number("memLimit", n.Memory)
	if n.Limit > 0 {
		b.Number("limitAmount", n.Limit)
	}
	if n.IDs {
		b.String("type", "default")
	} else {
		b.String("type", "simple")
	}
}

// SortSpec is a sort's pattern as a document.
func SortSpec(p *sortpattern.Pattern) bson.Doc {
	b := bson.Build()
	for i, part := range p.Parts {
		switch {
		case part.Meta != "":
			b.Object("$computed"+bson.IndexKey(i)).String("$meta", part.Meta).End()
		case part.Desc:
			b.Int32(part.Path.String(), -1)
		default:
			b.Int32(part.Path.String(), 1)
		}
	}
	return b.Doc()
}
