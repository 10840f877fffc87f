package planner

import (
	"math"
	"slices"
	"strings"

	"github.com/ebbdb/ebb/internal/bson"
	"github.com/ebbdb/ebb/internal/collation"
	"github.com/ebbdb/ebb/internal/fieldpath"
	"github.com/ebbdb/ebb/internal/match"
)

// predicate is a node of the filter that bounds the values of one path. Predicates of one scope are about one and the same
// array element; nil is the scope of the whole document.
type predicate struct {
	path  string
	node  match.Node
	scope match.Node
	// depth is how many components of path lead to the elements of the scope, at most 63.
	depth int
	// top is the conjunct of the filter that the predicate is, or is a part of.
	top match.Node
	// compares is what a *match.Expr demands of the path; nil for others.
	compares *comparison
}

// bounds is nodeBounds for what d demands.
func (d predicate) bounds(x Index, i int, query *collation.Collation) (s Intervals, t tightness, ok bool) {
	if d.compares != nil {
		s, ok = d.compares.bounds(x, i, query)
		return s, loose, ok
	}
	return nodeBounds(d.node, x, i, query)
}

// predicates collects what the filter demands of paths: the branches of $and and the inside of $elemMatch.
func predicates(n match.Node) []predicate {
	var out []predicate
	for _, c := range conjuncts(n) {
		collect(c, "", predicate{top: c}, &out)
	}
	return out
}

// conjuncts are the nodes that n says hold all at once.
func conjuncts(n match.Node) []match.Node {
	switch n := n.(type) {
	case nil:
		return nil
	case *match.And:
		return n.Children
	}
	return []match.Node{n}
}

func collect(n match.Node, prefix string, within predicate, out *[]predicate) {
	switch n := n.(type) {
	case *match.And:
		for _, c := range n.Children {
			collect(c, prefix, within, out)
		}
	case *match.ElemMatchObject:
		if within.entersByPosition(n.Path.String()) {
			return
		}
		within.scope, within.depth = n, depthOf(prefix, n.Path)
		collect(n.Child, prefix+n.Path.String()+".", within, out)
	case *match.ElemMatchValue:
		if within.entersByPosition(n.Path.String()) {
			return
		}
		for _, c := range n.Children {
			*out = append(*out, predicate{path: prefix + n.Path.String(), node: c, scope: n, depth: depthOf(prefix, n.Path), top: within.top})
		}
	default:
		if path := pathOf(n); path != "" && !within.entersByPosition(path) {
			*out = append(*out, predicate{path: prefix + path, node: n, scope: within.scope, depth: within.depth, top: within.top})
		}
	}
}

// entersByPosition says whether path, inside of the scope, may lead into an element that is an array, where no index follows.
func (d predicate) entersByPosition(path string) bool { return d.scope != nil && hasPosition(path) }

func depthOf(prefix string, p fieldpath.Path) int { return min(strings.Count(prefix, ".")+p.Len(), 63) }

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

// tightness says what bounds leave to look at.
type tightness uint8

const (
	// loose: the document has to be held against the predicate.
	loose tightness = iota
	// onKey: the predicate can be held against the key, where the key tells the value; else against the document.
	onKey
	// nulls is exact where the path goes through no array, and loose elsewhere.
	nulls
	// exact: documents with a key within the bounds match, others do not.
	exact
)

// nodeBounds is a set of keys of x's i-th field that holds at least one key of every document that n matches. ok is false
// where n says nothing of keys, or where the index's collation orders strings otherwise than the query.
func nodeBounds(n match.Node, x Index, i int, query *collation.Collation) (s Intervals, t tightness, ok bool) {
	switch {
	case x.isHashed(i):
		s, ok = x.hashedBounds(n, query)
		return s, loose, ok
	case x.isWildValue(i):
		if ok = x.serves(n); ok {
			s, t, ok = valueBounds(n, x, i, query)
			s, t = x.leaves(s, t)
		}
		return s, t, ok
	}
	return valueBounds(n, x, i, query)
}

func valueBounds(n match.Node, x Index, i int, query *collation.Collation) (s Intervals, t tightness, ok bool) {
	switch n := n.(type) {
	case *match.Compare:
		if n.Value.Type == bson.TypeNull && hasPosition(n.Path.String()) {
			return All(), loose, true
		}
		s, t, ok = compareBounds(n.Op, n.Value, x, query)
	case *match.In:
		if hasPosition(n.Path.String()) && slices.ContainsFunc(n.Values, bson.Value.IsNullish) {
			return All(), loose, true
		}
		s, t, ok = inBounds(n, x, query)
	case *match.Exists:
		if x.Sparse && len(x.Fields) == 1 {
			return All(), exact, true
		}
		return All(), loose, true
	case *match.Type:
		s, t, ok = typeBounds(n.Types, x), loose, true
	case *match.Regex:
		s, t = regexBounds(n, x)
		ok = true
	case *match.Mod:
		return Intervals{bracket(bson.TypeDouble)}, onKey, true
	case *match.Not:
		s, t, ok = notBounds(n.Child, x, i, query)
	}
	if t == nulls { // no array on the way: a document whose key is null has null there, or nothing
		t = exact
		if x.multikey(i) != 0 || x.isWildValue(i) {
			t = loose
		}
	}
	if hasPosition(x.Fields[i].Path) {
		t = loose
	}
	return s, t, ok
}

// tells says whether comparing for equality or order with a value of the type is the same on keys as on documents.
func tells(t bson.Type) bool {
	switch t {
	case bson.TypeString, bson.TypeObject, bson.TypeObjectID, bson.TypeBool, bson.TypeDate, bson.TypeBinary, bson.TypeInt32, bson.TypeInt64, bson.TypeDouble, bson.TypeDecimal,
		bson.TypeTimestamp:
		return true
	}
	return false
}

func compareBounds(op match.CompareOp, v bson.Value, x Index, query *collation.Collation) (s Intervals, t tightness, ok bool) {
	if hasStrings(v) && !collation.Equal(x.Collator(), query) {
		return nil, loose, false
	}
	if tells(v.Type) && (op == match.Eq || !v.IsNaN()) {
		t = exact
	}
	switch v.Type {
	case bson.TypeArray:
		if op != match.Eq {
			return All(), loose, true
		}
		return arrayPoint(v, x), loose, true
	case bson.TypeMinKey, bson.TypeMaxKey:
		if op != match.Eq {
			return All(), loose, true
		}
	case bson.TypeNull:
		if t = nulls; op == match.Lt || op == match.Gt { // which nothing is
			t = loose
		}
		return Intervals{Point(bson.Null)}, t, true
	}
	if op == match.Eq || v.IsNaN() {
		return Intervals{Point(v)}, t, true
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
	if v.IsNumber() && (op == match.Gt || op == match.Gte) {
		i.High = bson.Double(math.Inf(1))
	}
	if i.empty(x.compare) {
		return Intervals{}, t, true
	}
	return Intervals{i}, t, true
}

// arrayPoint bounds equality with an array: the array is a key where it is nested in another; else its elements are keys.
func arrayPoint(v bson.Value, x Index) Intervals {
	first := v.Doc().Index(0)
	if first.IsMissing() {
		first = bson.Undefined
	}
	return union(x.compare, Intervals{Point(v)}, Intervals{Point(first)})
}

func inBounds(n *match.In, x Index, query *collation.Collation) (s Intervals, t tightness, ok bool) {
	s, t = Intervals{}, exact
	for _, v := range n.Values {
		b, bt, ok := compareBounds(match.Eq, v, x, query)
		if !ok {
			return nil, loose, false
		}
		s, t = append(s, b...), min(t, bt)
	}
	for _, r := range n.Regexes {
		b, bt := regexBounds(r, x)
		s, t = append(s, b...), min(t, bt)
	}
	return normalize(x.compare, s), t, true
}

// notBounds is the complement of what the negated node matches, where the keys tell that exactly.
func notBounds(n match.Node, x Index, i int, query *collation.Collation) (s Intervals, t tightness, ok bool) {
	t = exact
	if x.multikey(i) != 0 {
		t = loose // another element's key may lie in the complement
	}
	switch n := n.(type) {
	case *match.Exists:
		if hasPosition(x.Fields[i].Path) {
			return All(), loose, true
		}
		return Intervals{Point(bson.Null)}, loose, true
	case *match.Compare:
		if n.Value.Type == bson.TypeNull && n.Op == match.Eq {
			return notNull(x, i, t)
		}
	case *match.In:
		for _, v := range n.Values {
			if v.Type == bson.TypeNull && len(x.Fields[i].Parts) > 1 && t == loose {
				return All(), loose, true
			}
		}
		return notIn(n, x, t, query)
	default:
		return nil, loose, false
	}
	b, bt, ok := nodeBounds(n, x, i, query)
	if !ok {
		return nil, loose, false
	}
	if bt != exact {
		return All(), loose, true
	}
	return complement(b, x), t, true
}

// notNull is what has a value. Behind an array a missing field has the key null, too, and yet is not null itself.
func notNull(x Index, i int, t tightness) (Intervals, tightness, bool) {
	if t == loose && len(x.Fields[i].Parts) > 1 {
		return All(), loose, true
	}
	return complement(Intervals{Point(bson.Null)}, x), t, true
}

func notIn(n *match.In, x Index, t tightness, query *collation.Collation) (Intervals, tightness, bool) {
	for _, v := range n.Values {
		if !tells(v.Type) && v.Type != bson.TypeNull {
			return All(), loose, true
		}
	}
	if len(n.Regexes) > 0 {
		return All(), loose, true
	}
	b, _, ok := inBounds(n, x, query)
	if !ok {
		return nil, loose, false
	}
	return complement(b, x), t, true
}

func complement(points Intervals, x Index) Intervals {
	var out Intervals
	low, inclusive := bson.MinKey, true
	for _, p := range points {
		if i := (Interval{low, p.Low, inclusive, !p.LowInclusive}); !i.empty(x.compare) {
			out = append(out, i)
		}
		low, inclusive = p.High, !p.HighInclusive
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
