package match

import (
	"github.com/ebbdb/ebb/internal/bson"
	"github.com/ebbdb/ebb/internal/collation"
	"github.com/ebbdb/ebb/internal/fieldpath"
)

// Simplify is a node that says the same with less: conjunctions in conjunctions and alternatives in alternatives are one,
// alternatives of equality along one path are an In, an In of one value is an equality, and what can only fail is
// AlwaysFalse. Parser.Parse does it; nodes below are changed in place.
func Simplify(n Node) Node {
	switch n := n.(type) {
	case *And:
		return simplifyAnd(n)
	case *Or:
		return simplifyOr(n)
	case *Nor:
		for i, child := range n.Children {
			n.Children[i] = Simplify(child)
		}
	case *Not:
		n.Child = Simplify(n.Child)
	case *ElemMatchObject:
		n.Child = Simplify(n.Child)
	case *In:
		return simplifyIn(n)
	}
	return n
}

func simplifyAnd(n *And) Node {
	var flat []Node
	for _, child := range n.Children {
		switch child := Simplify(child).(type) {
		case *And:
			flat = append(flat, child.Children...)
		case *AlwaysTrue:
		case *AlwaysFalse:
			return child
		default:
			flat = append(flat, child)
		}
	}
	n.Children = flat
	return n.simple()
}

func simplifyOr(n *Or) Node {
	var flat []Node
	for _, child := range n.Children {
		switch child := Simplify(child).(type) {
		case *Or:
			flat = append(flat, child.Children...)
		case *AlwaysTrue:
			return child
		case *AlwaysFalse:
		default:
			flat = append(flat, child)
		}
	}
	switch n.Children = joinEqualities(flat); len(n.Children) {
	case 0:
		return &AlwaysFalse{}
	case 1:
		return n.Children[0]
	}
	return n
}

func simplifyIn(n *In) Node {
	switch {
	case len(n.Values)+len(n.Regexes) == 0:
		return &AlwaysFalse{}
	case len(n.Values) == 1 && len(n.Regexes) == 0:
		return &Compare{n.Path, Eq, n.Values[0], n.Collation}
	case len(n.Regexes) == 1 && len(n.Values) == 0:
		return n.Regexes[0]
	}
	return n
}

// joinEqualities makes one In of alternatives that compare the same path for equality, in the place of the first.
func joinEqualities(nodes []Node) []Node {
	type group struct {
		path      fieldpath.Path
		collation *collation.Collation
		values    []bson.Value
		regexes   []*Regex
		at        int
		members   int
	}
	groups := map[string]*group{}
	var out []Node
	for _, n := range nodes {
		var path fieldpath.Path
		var c *collation.Collation
		var values []bson.Value
		var regexes []*Regex
		switch n := n.(type) {
		case *In:
			path, c, values, regexes = n.Path, n.Collation, n.Values, n.Regexes
		case *Compare:
			if n.Op == Eq && n.Value.Type != bson.TypeRegex {
				path, c, values = n.Path, n.Collation, []bson.Value{n.Value}
			}
		case *Regex:
			path, regexes = n.Path, []*Regex{n}
		}
		if values == nil && regexes == nil {
			out = append(out, n)
			continue
		}
		g := groups[path.String()]
		if g == nil {
			g = &group{path: path, at: len(out)}
			groups[path.String()] = g
			out = append(out, n)
		}
		if c != nil { // all alternatives of a filter have one collation; patterns have none
			g.collation = c
		}
		g.values, g.regexes, g.members = append(g.values, values...), append(g.regexes, regexes...), g.members+1
	}
	for _, g := range groups {
		if g.members > 1 {
			out[g.at] = simplifyIn(NewIn(g.path, g.values, g.regexes, g.collation))
		}
	}
	return out
}
