package match

import (
	"cmp"
	"slices"

	"github.com/ebbdb/ebb/internal/bson"
)

// Explained is the filter as explain shows it: conditions stand in MongoDB's order, by their kind, then by their path, whatever the order in which they came; and
// what is denied within a conjunction is denied one by one.
func (f *Filter) Explained() bson.Doc { return PrintNode(ordered(f.Root)) }

// ordered is a copy of n with conditions in the order in which explain shows them.
func ordered(n Node) Node {
	switch n := n.(type) {
	case *And:
		var children []Node
		for _, child := range n.Children {
			if nor, ok := child.(*Nor); ok {
				children = append(children, denials(nor)...)
			} else {
				children = append(children, ordered(child))
			}
		}
		slices.SortStableFunc(children, compareKinds)
		return &And{children}
	case *Or:
		return &Or{orderedAll(n.Children)}
	case *Nor:
		if len(n.Children) == 1 {
			return denials(n)[0]
		}
		return &Nor{orderedAll(n.Children)}
	case *Not:
		return &Not{ordered(n.Child)}
	case *ElemMatchObject:
		return &ElemMatchObject{n.Path, ordered(n.Child)}
	case *ElemMatchValue:
		return &ElemMatchValue{n.Path, orderedAll(n.Children)}
	}
	return n
}

func orderedAll(nodes []Node) []Node {
	out := make([]Node, len(nodes))
	for i, n := range nodes {
		out[i] = ordered(n)
	}
	slices.SortStableFunc(out, compareKinds)
	return out
}

// denials are the alternatives of a $nor, each denied.
func denials(n *Nor) []Node {
	out := make([]Node, len(n.Children))
	for i, child := range n.Children {
		out[i] = &Not{ordered(child)}
	}
	return out
}

// compareKinds orders conditions by kind, then by path, then by the conditions within.
func compareKinds(a, b Node) int {
	if c := cmp.Compare(kindOrder(a), kindOrder(b)); c != 0 {
		return c
	}
	if c := cmp.Compare(shownPath(a), shownPath(b)); c != 0 {
		return c
	}
	return slices.CompareFunc(Children(a), Children(b), compareKinds)
}

func shownPath(n Node) string {
	path, _ := PathOf(n)
	return path.String()
}

// kindOrder is where conditions of n's kind stand among others.
func kindOrder(n Node) int {
	switch n := n.(type) {
	case *And:
		return 0
	case *Or:
		return 1
	case *ElemMatchObject:
		return 2
	case *ElemMatchValue:
		return 3
	case *Size:
		return 4
	case *Compare:
		return 5 + [...]int{Eq: 0, Lte: 1, Lt: 2, Gt: 3, Gte: 4}[n.Op]
	case *Regex:
		return 10
	case *Mod:
		return 11
	case *Exists:
		return 12
	case *In:
		return 13
	case *Bits:
		return 14
	case *Not:
		return 15
	case *Nor:
		return 16
	case *Type:
		return 17
	case *GeoWithin, *GeoIntersects:
		return 18
	case *Where:
		return 19
	case *Expr, *SampleRate:
		return 20
	case *AlwaysFalse:
		return 21
	case *AlwaysTrue:
		return 22
	case *GeoNear:
		return 23
	case *Text:
		return 24
	}
	return 25
}
