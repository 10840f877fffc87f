package match

import (
	"github.com/ebbdb/ebb/internal/bson"
)

// Print is the filter in its canonical form, which parses to the same filter.
func (f *Filter) Print() bson.Doc { return PrintNode(f.Root) }

// PrintNode is a node in its canonical form.
func PrintNode(n Node) bson.Doc {
	b := bson.Build()
	n.print(b)
	return b.Doc()
}

func printList(b *bson.Builder, name string, nodes []Node) {
	b.Array(name)
	for i, n := range nodes {
		b.Object(bson.IndexKey(i))
		n.print(b)
		b.End()
	}
	b.End()
}

func (n *And) print(b *bson.Builder) {
	if len(n.Children) > 0 {
		printList(b, "$and", n.Children)
	}
}

func (n *Or) print(b *bson.Builder)  { printList(b, "$or", n.Children) }
func (n *Nor) print(b *bson.Builder) { printList(b, "$nor", n.Children) }

// print writes a negated condition behind its path, and anything else as $nor.
func (n *Not) print(b *bson.Builder) {
	child := PrintNode(n.Child)
	it := child.Iter()
	if it.Next() && it.Value().Type == bson.TypeObject && (it.Key() == "" || it.Key()[0] != '$') {
		b.Object(it.Key()).Value("$not", it.Value()).End()
		return
	}
	printList(b, "$nor", []Node{n.Child})
}

func (n *Compare) print(b *bson.Builder) {
	switch path := n.Path.String(); path {
	case "$ref", "$id", "$db": // the fields of a DBRef look like operators and take values only
		b.Value(path, n.Value)
	default:
		b.Object(path).Value(n.Op.String(), n.Value).End()
	}
}

func (n *In) print(b *bson.Builder) {
	b.Object(n.Path.String()).Array("$in")
	for i, v := range n.Values {
		b.Value(bson.IndexKey(i), v)
	}
	for i, r := range n.Regexes {
		b.Value(bson.IndexKey(len(n.Values)+i), bson.Regex(r.Pattern, r.Options))
	}
	b.End().End()
}

func (n *Exists) print(b *bson.Builder) { b.Object(n.Path.String()).Bool("$exists", true).End() }

func (n *Type) print(b *bson.Builder) {
	b.Object(n.Path.String()).Array("$type")
	n.Types.print(b)
	b.End().End()
}

// print appends the types' codes to an open array.
func (s *TypeSet) print(b *bson.Builder) {
	i := 0
	if s.Numbers {
		b.String("0", "number")
		i++
	}
	for _, t := range s.Types {
		code := int32(t)
		if t == bson.TypeMinKey {
			code = -1
		}
		b.Int32(bson.IndexKey(i), code)
		i++
	}
}

func (n *Size) print(b *bson.Builder) { b.Object(n.Path.String()).Number("$size", n.N).End() }

func (n *ElemMatchObject) print(b *bson.Builder) {
	b.Object(n.Path.String()).Document("$elemMatch", PrintNode(n.Child)).End()
}

// print writes the conditions of the value form without the empty path that they have.
func (n *ElemMatchValue) print(b *bson.Builder) {
	b.Object(n.Path.String()).Object("$elemMatch")
	for _, child := range n.Children {
		printOperators(b, child)
	}
	b.End().End()
}

// printOperators appends the operators of nodes that have the empty path to an open document.
func printOperators(b *bson.Builder, n Node) {
	switch n := n.(type) {
	case *And:
		for _, child := range n.Children {
			printOperators(b, child)
		}
	case *Not:
		b.Object("$not")
		printOperators(b, n.Child)
		b.End()
	case *AlwaysFalse:
		b.Array("$in").End()
	default:
		if v := PrintNode(n).Lookup(""); v.Type == bson.TypeObject {
			b.Fields(v.Doc())
		}
	}
}

func (n *Mod) print(b *bson.Builder) {
	b.Object(n.Path.String()).Array("$mod").Int64("0", n.Divisor).Int64("1", n.Remainder).End().End()
}

func (n *Regex) print(b *bson.Builder) {
	b.Object(n.Path.String()).String("$regex", n.Pattern)
	if n.Options != "" {
		b.String("$options", n.Options)
	}
	b.End()
}

func (n *Bits) print(b *bson.Builder) {
	b.Object(n.Path.String()).Array(n.Op.String())
	for i, at := range n.Positions {
		b.Int32(bson.IndexKey(i), int32(at))
	}
	b.End().End()
}

func (n *Expr) print(b *bson.Builder)       { b.Value("$expr", n.Source) }
func (*AlwaysTrue) print(b *bson.Builder)   { b.Int32("$alwaysTrue", 1) }
func (*AlwaysFalse) print(b *bson.Builder)  { b.Int32("$alwaysFalse", 1) }
func (n *SampleRate) print(b *bson.Builder) { b.Double("$sampleRate", n.Rate) }

func (n *Where) print(b *bson.Builder) { b.Value("$where", bson.Code(n.Code)) }

func (n *Text) print(b *bson.Builder) {
	b.Object("$text").String("$search", n.Search).String("$language", n.Language)
	b.Bool("$caseSensitive", n.CaseSensitive).Bool("$diacriticSensitive", n.DiacriticSensitive).End()
}
