package match

import (
	"strconv"
	"strings"

	"github.com/ebbdb/ebb/internal/bson"
)

// maxOutline is about how many bytes an outline has at most: an $in may be as large as a document, and a message should not.
const maxOutline = 64 << 10

// Outline is what n asks for as messages about a whole query tell it, which clients look into: a line a condition, each four
// spaces deeper than the one that it belongs to. Conditions stand in the order in which explain shows them.
func Outline(n Node) string {
	var b strings.Builder
	outline(&b, ordered(n), 0)
	return b.String()
}

func outline(b *strings.Builder, n Node, depth int) {
	if and, ok := n.(*And); ok {
		n = and.simple()
	}
	if b.Len() > maxOutline {
		return
	}
	b.WriteString(strings.Repeat("    ", depth))
	outlineCondition(b, n)
	b.WriteByte('\n')
	switch n.(type) {
	case *And, *Or, *Nor, *Not, *ElemMatchObject, *ElemMatchValue:
		for _, child := range Children(n) {
			outline(b, child, depth+1)
		}
	}
}

// outlineCondition writes a condition without those that belong to it.
func outlineCondition(b *strings.Builder, n Node) {
	switch n := n.(type) {
	case *And:
		b.WriteString("$and")
	case *Or:
		b.WriteString("$or")
	case *Nor:
		b.WriteString("$nor")
	case *Not:
		b.WriteString("$not")
	case *ElemMatchObject:
		b.WriteString(n.Path.String() + " $elemMatch (obj)")
	case *ElemMatchValue:
		b.WriteString(n.Path.String() + " $elemMatch (value)")
	case *Compare:
		b.WriteString(n.Path.String() + " " + n.Op.String() + " " + n.Value.Beginning(maxOutline))
	case *In:
		n.outline(b)
	case *Exists:
		b.WriteString(n.Path.String() + " exists")
	case *Regex:
		b.WriteString(n.Path.String() + " regex /" + n.Pattern + "/" + n.Options)
	case *GeoNear:
		n.outline(b)
	default:
		b.WriteString(PrintNode(n).Value().Beginning(maxOutline))
	}
}

func (n *In) outline(b *strings.Builder) {
	b.WriteString(n.Path.String() + " $in [ ")
	for _, v := range n.Values {
		if b.Len() > maxOutline {
			break
		}
		b.WriteString(v.Beginning(maxOutline) + " ")
	}
	for _, r := range n.Regexes {
		b.WriteString(bson.Regex(r.Pattern, r.Options).String() + " ")
	}
	b.WriteByte(']')
}

func (n *GeoNear) outline(b *strings.Builder) {
	sphere := "0"
	if n.Source.FirstKey() == "$nearSphere" {
		sphere = "1"
	}
	b.WriteString("GEONEAR  field=" + n.Path.String() + " maxdist=" + strconv.FormatFloat(n.Max, 'g', 6, 64) + " isNearSphere=" + sphere)
}
