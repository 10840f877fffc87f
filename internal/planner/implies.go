package planner

import (
	"github.com/ebbdb/ebb/internal/bson"
	"github.com/ebbdb/ebb/internal/collation"
	"github.com/ebbdb/ebb/internal/match"
)

// implies says whether every document that meets the demands also matches n, a partial index's filter. It may say no
// where the answer is yes.
func implies(demands []predicate, n match.Node, query *collation.Collation) bool {
	switch n := n.(type) {
	case *match.And:
		for _, c := range n.Children {
			if !implies(demands, c, query) {
				return false
			}
		}
		return true
	case *match.Or:
		for _, c := range n.Children {
			if implies(demands, c, query) {
				return true
			}
		}
		return false
	}
	path := pathOf(n)
	for _, d := range demands {
		if d.path == path && d.scope == nil && nodeImplies(d.node, n, query) {
			return true
		}
	}
	return false
}

// nodeImplies says whether what matches a on some path also matches b on it.
func nodeImplies(a, b match.Node, query *collation.Collation) bool {
	if _, ok := b.(*match.Exists); ok {
		return impliesExists(a)
	}
	if in, ok := a.(*match.In); ok {
		for _, v := range in.Values {
			if !nodeImplies(&match.Compare{Path: in.Path, Op: match.Eq, Value: v}, b, query) {
				return false
			}
		}
		return len(in.Regexes) == 0 && len(in.Values) > 0
	}
	switch b := b.(type) {
	case *match.Compare:
		a, ok := a.(*match.Compare)
		return ok && collation.Equal(b.Collation, query) && compareImplies(a, b)
	case *match.In:
		a, ok := a.(*match.Compare)
		if !ok || a.Op != match.Eq || !collation.Equal(b.Collation, query) {
			return false
		}
		for _, v := range b.Values {
			if bson.Equal(v, a.Value) && v.Type != bson.TypeArray {
				return true
			}
		}
	case *match.Type:
		if a, ok := a.(*match.Compare); ok && a.Value.Type != bson.TypeArray && a.Value.Type != bson.TypeNull {
			return b.Types.Has(a.Value.Type) && (!a.Value.IsNumber() || b.Types.Numbers)
		}
		if a, ok := a.(*match.Type); ok {
			return sameTypes(a.Types, b.Types)
		}
	}
	return false
}

func sameTypes(a, b match.TypeSet) bool {
	if a.Numbers && !b.Numbers {
		return false
	}
	for _, t := range a.Types {
		if !b.Has(t) {
			return false
		}
	}
	return true
}

func compareImplies(a, b *match.Compare) bool {
	if a.Value.Type == bson.TypeArray || b.Value.Type == bson.TypeArray || a.Value.Type.Class() != b.Value.Type.Class() || a.Value.IsNaN() || b.Value.IsNaN() {
		return false
	}
	var c bson.Collator
	if b.Collation != nil {
		c = b.Collation
	}
	d := bson.CompareWith(a.Value, b.Value, c)
	switch b.Op {
	case match.Eq:
		return a.Op == match.Eq && d == 0
	case match.Lt:
		return d < 0 && (a.Op == match.Eq || a.Op == match.Lt || a.Op == match.Lte) || d == 0 && a.Op == match.Lt
	case match.Lte:
		return d <= 0 && (a.Op == match.Eq || a.Op == match.Lt || a.Op == match.Lte)
	case match.Gt:
		return d > 0 && (a.Op == match.Eq || a.Op == match.Gt || a.Op == match.Gte) || d == 0 && a.Op == match.Gt
	case match.Gte:
		return d >= 0 && (a.Op == match.Eq || a.Op == match.Gt || a.Op == match.Gte)
	}
	return false
}

// impliesExists says whether what matches n has a value at n's path.
func impliesExists(n match.Node) bool {
	switch n := n.(type) {
	case *match.Exists, *match.Regex, *match.Mod:
		return true
	case *match.Type:
		return true
	case *match.Compare:
		return n.Value.Type != bson.TypeNull && !(n.Op != match.Eq && (n.Value.Type == bson.TypeMinKey || n.Value.Type == bson.TypeMaxKey))
	case *match.In:
		for _, v := range n.Values {
			if v.Type == bson.TypeNull {
				return false
			}
		}
		return true
	case *match.Not:
		c, ok := n.Child.(*match.Compare)
		return ok && c.Op == match.Eq && c.Value.Type == bson.TypeNull
	}
	return false
}
