package match

import "github.com/ebbdb/ebb/internal/fieldpath"

// Renaming says what a path is called instead; ok is false when there is no such path.
type Renaming func(path string) (instead string, ok bool)

// Rename is n with the paths that it looks along renamed; ok is false when one has no other name, or when n reads more of
// documents than paths. Nodes that keep their paths are shared with n.
func Rename(n Node, names Renaming) (renamed Node, ok bool) {
	if p, is := PathOf(n); is {
		instead, ok := names(p.String())
		if !ok || instead == p.String() {
			return n, ok
		}
		return withPath(n, fieldpath.Split(instead))
	}
	switch n := n.(type) {
	case *And:
		children, ok := renameAll(n.Children, names)
		return &And{children}, ok
	case *Or:
		children, ok := renameAll(n.Children, names)
		return &Or{children}, ok
	case *Nor:
		children, ok := renameAll(n.Children, names)
		return &Nor{children}, ok
	case *Not:
		child, ok := Rename(n.Child, names)
		return &Not{child}, ok
	case *AlwaysTrue, *AlwaysFalse:
		return n, true
	case *Expr:
		return n, keeps(n, names)
	}
	return n, false
}

func renameAll(nodes []Node, names Renaming) ([]Node, bool) {
	out := make([]Node, len(nodes))
	for i, n := range nodes {
		var ok bool
		if out[i], ok = Rename(n, names); !ok {
			return nil, false
		}
	}
	return out, true
}

// keeps says whether all that n reads is called as before.
func keeps(n Node, names Renaming) bool {
	var d Dependencies
	if d.add(n); d.Whole || d.Volatile {
		return false
	}
	for _, path := range d.Fields {
		if instead, ok := names(path); !ok || instead != path {
			return false
		}
	}
	return true
}

// withPath is a leaf along another path.
func withPath(n Node, path fieldpath.Path) (Node, bool) {
	switch n := n.(type) {
	case *Compare:
		c := *n
		c.Path = path
		return &c, true
	case *In:
		c := *n
		c.Path, c.Regexes = path, nil
		for _, r := range n.Regexes {
			of := *r
			of.Path = path
			c.Regexes = append(c.Regexes, &of)
		}
		return &c, true
	case *Exists:
		return &Exists{path}, true
	case *Type:
		return &Type{path, n.Types}, true
	case *Size:
		return &Size{path, n.N}, true
	case *ElemMatchObject:
		return &ElemMatchObject{path, n.Child}, true
	case *Mod:
		c := *n
		c.Path = path
		return &c, true
	case *Regex:
		c := *n
		c.Path = path
		return &c, true
	}
	return n, false
}

// With is f with another root.
func (f *Filter) With(root Node) *Filter {
	return &Filter{Root: root, Source: PrintNode(root), Collation: f.Collation}
}

// Conjuncts are the nodes that all have to match, for a document to match n.
func Conjuncts(n Node) []Node {
	and, ok := n.(*And)
	if !ok {
		return []Node{n}
	}
	var out []Node
	for _, child := range and.Children {
		out = append(out, Conjuncts(child)...)
	}
	return out
}

// AllOf is a node that matches what all the nodes do.
func AllOf(nodes []Node) Node { return (&And{nodes}).simple() }
