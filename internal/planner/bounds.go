package planner

import (
	"math"
	"slices"
	"strings"

	"github.com/ebbdb/ebb/internal/bson"
	"github.com/ebbdb/ebb/internal/collation"
	"github.com/ebbdb/ebb/internal/match"
)

// predicate is a node of the filter that bounds the values of one path. Predicates of one scope are about one and the same
// array element; nil is the scope of the whole document.
type predicate struct {
	path  string
	node  match.Node
	scope match.Node
}

// predicates collects what the filter demands of paths: the branches of $and and the inside of $elemMatch.
func predicates(n match.Node) []predicate {
	var out []predicate
	collect(n, "", nil, &out)
	return out
}

func collect(n match.Node, prefix string, scope match.Node, out *[]predicate) {
	switch n := n.(type) {
	case *match.And:
		for _, c := range n.Children {
			collect(c, prefix, scope, out)
		}
	case *match.ElemMatchObject:
		collect(n.Child, prefix+n.Path.String()+".", n, out)
	case *match.ElemMatchValue:
		for _, c := range n.Children {
			*out = append(*out, predicate{prefix + n.Path.String(), c, n})
		}
	default:
		if path := pathOf(n); path != "" && (scope == nil || !hasPosition(path)) {
			*out = append(*out, predicate{prefix + path, n, scope})
		}
	}
}

// pathOf is the path that a leaf looks at, "" for nodes without one.
func pathOf(n match.Node) string {
	switch n := n.(type) {
	case *match.Compare:
		return n.Path.String()
	case *match.In:
		return n.Path.String()
	case *match.Exists:
		return n.Path.String()
	case *match.Type:
		return n.Path.String()
	case *match.Regex:
		return n.Path.String()
	case *match.Mod:
		return n.Path.String()
	case *match.GeoWithin:
		return n.Path.String()
	case *match.GeoIntersects:
		return n.Path.String()
	case *match.Not:
		return pathOf(n.Child)
	}
	return ""
}

// hasPosition says whether a component of path may be a position in an array. An index takes it for one wherever there is
// such an element; a filter also looks for a field of that name in each element, and finds none, which is null. Inside of
// an $elemMatch the element may be an array itself, which an index does not enter.
func hasPosition(path string) bool {
	for part := range strings.SplitSeq(path, ".") {
		if part != "" && strings.Trim(part, "0123456789") == "" {
			return true
		}
	}
	return false
}

// nodeBounds is a set of keys that holds at least one key of every document that n matches. ok is false where n says
// nothing of keys, or where the index's collation orders strings otherwise than the query.
func nodeBounds(n match.Node, x Index, query *collation.Collation) (s Intervals, ok bool) {
	switch n := n.(type) {
	case *match.Compare:
		if n.Value.Type == bson.TypeNull && hasPosition(n.Path.String()) {
			return All(), true
		}
		return compareBounds(n.Op, n.Value, x, query)
	case *match.In:
		if hasPosition(n.Path.String()) && slices.ContainsFunc(n.Values, bson.Value.IsNullish) {
			return All(), true
		}
		return inBounds(n, x, query)
	case *match.Exists:
		return All(), true
	case *match.Type:
		return typeBounds(n.Types, x), true
	case *match.Regex:
		return regexBounds(n, x), true
	case *match.Mod:
		return Intervals{bracket(bson.TypeDouble)}, true
	case *match.Not:
		return notBounds(n.Child, x, query)
	}
	return nil, false
}

func compareBounds(op match.CompareOp, v bson.Value, x Index, query *collation.Collation) (Intervals, bool) {
	if hasStrings(v) && !collation.Equal(x.Collator(), query) {
		return nil, false
	}
	switch v.Type {
	case bson.TypeArray:
		if op != match.Eq {
			return All(), true
		}
		return arrayPoint(v, x), true
	case bson.TypeMinKey, bson.TypeMaxKey:
		if op != match.Eq {
			return All(), true
		}
	case bson.TypeNull:
		return Intervals{Point(bson.Null)}, true
	}
	if op == match.Eq || v.IsNaN() {
		return Intervals{Point(v)}, true
	}
	i := bracket(v.Type)
	switch op {
	case match.Lt:
		i.High, i.HighInclusive = v, false
	case match.Lte:
		i.High, i.HighInclusive = v, true
	case match.Gt:
		i.Low, i.LowInclusive = v, false
	case match.Gte:
		i.Low, i.LowInclusive = v, true
	}
	if v.IsNumber() && (op == match.Lt || op == match.Lte) {
		i.Low = bson.Double(math.Inf(-1)) // NaN is less than nothing
	}
	if i.empty(x.compare) {
		return Intervals{}, true
	}
	return Intervals{i}, true
}

// arrayPoint bounds equality with an array: the array is a key where it is nested in another; else its elements are keys.
func arrayPoint(v bson.Value, x Index) Intervals {
	first := v.Doc().Index(0)
	if first.IsMissing() {
		first = bson.Undefined
	}
	return union(x.compare, Intervals{Point(v)}, Intervals{Point(first)})
}

func inBounds(n *match.In, x Index, query *collation.Collation) (Intervals, bool) {
	s := Intervals{}
	for _, v := range n.Values {
		b, ok := compareBounds(match.Eq, v, x, query)
		if !ok {
			return nil, false
		}
		s = union(x.compare, s, b)
	}
	for _, r := range n.Regexes {
		s = union(x.compare, s, regexBounds(r, x))
	}
	return s, true
}

// notBounds is the complement of single values. A range has none that is safe: what it excludes may be of other types.
func notBounds(n match.Node, x Index, query *collation.Collation) (Intervals, bool) {
	var points Intervals
	switch n := n.(type) {
	case *match.Exists:
		return Intervals{Point(bson.Null)}, true
	case *match.Compare:
		if n.Op != match.Eq || n.Value.Type == bson.TypeArray {
			return All(), true
		}
		b, ok := compareBounds(match.Eq, n.Value, x, query)
		if !ok {
			return nil, false
		}
		points = b
	case *match.In:
		for _, v := range n.Values {
			if v.Type == bson.TypeArray || v.Type == bson.TypeRegex {
				return All(), true
			}
		}
		b, ok := inBounds(&match.In{Values: n.Values}, x, query)
		if !ok {
			return nil, false
		}
		points = b
	default:
		return nil, false
	}
	return complement(points, x), true
}

func complement(points Intervals, x Index) Intervals {
	var out Intervals
	low, inclusive := bson.MinKey, true
	for _, p := range points {
		if i := (Interval{low, p.Low, inclusive, false}); !i.empty(x.compare) {
			out = append(out, i)
		}
		low, inclusive = p.High, false
	}
	if i := (Interval{low, bson.MaxKey, inclusive, true}); !i.empty(x.compare) {
		out = append(out, i)
	}
	return out
}

func typeBounds(types match.TypeSet, x Index) Intervals {
	var s Intervals
	if types.Numbers {
		s = Intervals{bracket(bson.TypeDouble)}
	}
	for _, t := range types.Types {
		if t == bson.TypeArray {
			return All() // an array's elements are its keys
		}
		s = union(x.compare, s, Intervals{bracket(t)})
	}
	return s
}

func regexBounds(r *match.Regex, x Index) Intervals {
	strs := bracket(bson.TypeString)
	if p := literalPrefix(r.Pattern, r.Options); p != "" && x.Collator() == nil {
		strs = Interval{bson.String(p), bson.String(after(p)), true, false}
	}
	return union(x.compare, Intervals{strs}, Intervals{bracket(bson.TypeRegex)})
}

// literalPrefix is what every match of an anchored pattern starts with, "" when that is not plain to see.
func literalPrefix(pattern, options string) string {
	if options != "" || !strings.HasPrefix(pattern, "^") || strings.ContainsRune(pattern, '|') {
		return ""
	}
	p := pattern[1:]
	n := 0
	for n < len(p) && p[n] < 0x80 && !strings.ContainsRune(`\.+*?()[]{}^$#`, rune(p[n])) {
		n++
	}
	if n < len(p) && strings.IndexByte("*?{", p[n]) >= 0 && n > 0 {
		n-- // the last character may be absent
	}
	if n < len(p) && p[n] >= 0x80 {
		return ""
	}
	return p[:n]
}

// after is the least string above all that start with p, which is of plain characters.
func after(p string) string { return p[:len(p)-1] + string(rune(p[len(p)-1]+1)) }

// bracket is the interval of all values that compare with those of type t.
func bracket(t bson.Type) Interval {
	switch t.Class() {
	case bson.TypeNull.Class():
		return Point(bson.Null)
	case bson.TypeDouble.Class():
		return Interval{bson.Double(math.NaN()), bson.Double(math.Inf(1)), true, true}
	case bson.TypeString.Class():
		return Interval{bson.EmptyStr, bson.EmptyDoc.Value(), true, false}
	case bson.TypeObject.Class():
		return Interval{bson.EmptyDoc.Value(), bson.EmptyArr, true, false}
	case bson.TypeArray.Class():
		return Interval{bson.EmptyArr, bson.Binary(0, nil), true, false}
	case bson.TypeBinary.Class():
		return Interval{bson.Binary(0, nil), bson.ObjectID([12]byte{}), true, false}
	case bson.TypeObjectID.Class():
		return Interval{bson.ObjectID([12]byte{}), bson.False, true, false}
	case bson.TypeBool.Class():
		return Interval{bson.False, bson.True, true, true}
	case bson.TypeDate.Class():
		return Interval{bson.Date(math.MinInt64), bson.Date(math.MaxInt64), true, true}
	case bson.TypeTimestamp.Class():
		return Interval{bson.Timestamp(0, 0), bson.Timestamp(math.MaxUint32, math.MaxUint32), true, true}
	case bson.TypeRegex.Class():
		return Interval{bson.Regex("", ""), bson.MaxKey, true, false}
	case bson.TypeMinKey.Class():
		return Point(bson.MinKey)
	case bson.TypeMaxKey.Class():
		return Point(bson.MaxKey)
	case bson.TypeUndefined.Class():
		return Point(bson.Undefined)
	}
	return Interval{bson.Regex("", ""), bson.MaxKey, true, false} // the rare types above regular expressions
}

// hasStrings says whether a collation has a say in comparing v.
func hasStrings(v bson.Value) bool {
	switch v.Type {
	case bson.TypeString, bson.TypeSymbol:
		return true
	case bson.TypeObject, bson.TypeArray:
		for it := v.Doc().Iter(); it.Next(); {
			if hasStrings(it.Value()) {
				return true
			}
		}
	}
	return false
}
