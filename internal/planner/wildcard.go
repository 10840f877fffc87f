package planner

import (
	"slices"
	"strings"

	"github.com/ebbdb/ebb/internal/bson"
	"github.com/ebbdb/ebb/internal/index"
	"github.com/ebbdb/ebb/internal/match"
)

// A wildcard index is planned with as one index for each path that the filter asks for: its keys in which the wildcard
// stands for that path, behind index.PathField. Where an array stands on the way, a number in the path may be a position,
// which keys do not have, or a name: then the keys of both paths are walked.

// wildPath is what an Index that stands for one path of a wildcard index has beyond an ordered one.
type wildPath struct {
	// field is the place of index.PathField; the value's is the next.
	field int
	// paths are those that keys may have, in order; none where the wildcard's value does not matter.
	paths []string
}

// maxPositions is how many numbers in a path may be positions: each doubles the paths to look at. It is MongoDB's
// kWildcardMaxArrayIndexTraversalDepth.
const maxPositions = 8

// expand puts in the place of each wildcard index one for each path of the filter that it can serve.
func (p *planning) expand(indexes []Index) (out []Index) {
	var asked []string
	for _, x := range indexes {
		if x.Wild == nil || !x.Built() {
			out = append(out, x)
			continue
		}
		if asked == nil {
			asked = pathsOf(p.root)
		}
		out = append(out, x.expand(asked)...)
	}
	return out
}

func (x Index) expand(asked []string) (out []Index) {
	beside := false
	for _, path := range asked {
		beside = beside || slices.ContainsFunc(x.Fields[:x.Wild.Position], func(f index.Field) bool { return f.Path == path })
		if at, ok := x.at(path); ok {
			out = append(out, at)
		}
	}
	if beside {
		out = append(out, x.virtual(x.Fields[x.Wild.Position].Path, nil, 0))
	}
	return out
}

// pathsOf are those that the leaves of a filter look at, each once.
func pathsOf(n match.Node) (out []string) {
	met := map[string]bool{"": true}
	var look func(match.Node)
	look = func(n match.Node) {
		for _, d := range predicates(n) {
			if !met[d.path] {
				met[d.path] = true
				out = append(out, d.path)
			}
		}
		for _, c := range conjuncts(n) {
			if or, ok := c.(*match.Or); ok {
				for _, branch := range or.Children {
					look(branch)
				}
			}
		}
	}
	look(n)
	return out
}

// at is x for one path, if every value there has keys that can be found.
func (x Index) at(path string) (Index, bool) {
	found, multikey := []string{""}, uint64(0)
	for i, part := range strings.Split(path, ".") {
		var next []string
		for _, before := range found {
			named := part
			if i > 0 {
				named = before + "." + part
			}
			next = append(next, named)
			if i == 0 || !x.Paths.Has(before) || !isNumber(part) {
				continue
			}
			if x.Paths.HasNested(before) || len(found) > 1<<maxPositions {
				return Index{}, false // an array in an array is one value in the keys
			}
			next = append(next, before)
		}
		slices.Sort(next)
		found = slices.Compact(next)
		if slices.ContainsFunc(found, x.Paths.Has) {
			multikey |= 1 << min(i, 63)
		}
	}
	if !slices.ContainsFunc(found, func(p string) bool { return !x.Wild.Covers(p) }) {
		return x.virtual(path, found, multikey), true
	}
	return Index{}, false
}

func isNumber(part string) bool { return hasPosition("." + part) }

func (x Index) virtual(path string, found []string, multikey uint64) Index {
	at := x.Wild.Position
	v := Index{Definition: x.At(path), Paths: x.Paths, wild: &wildPath{at, found}}
	v.Multikey = make([]uint64, len(v.Fields))
	v.Multikey[at+1] = multikey
	return v
}

// isWildValue says whether x's i-th field is the value at a path of a wildcard.
func (x Index) isWildValue(i int) bool { return x.wild != nil && i == x.wild.field+1 }

// serves says whether all documents that n matches have keys at the path of a wildcard's value. Those without the path
// have none, and neither have objects and arrays as a whole but empty ones.
func (x Index) serves(n match.Node) bool {
	if len(x.wild.paths) == 0 || !impliesExists(n) {
		return false
	}
	switch n := n.(type) {
	case *match.Compare:
		return isLeafValue(n.Value) || n.Op == match.Eq && n.Value.Doc().IsEmpty()
	case *match.In:
		return !slices.ContainsFunc(n.Values, func(v bson.Value) bool { return !isLeafValue(v) && !v.Doc().IsEmpty() })
	case *match.Not:
		return !x.IsMultikey() // an array's documents without the rest of the path are not null, and have no key there
	}
	return true
}

func isLeafValue(v bson.Value) bool { return v.Type != bson.TypeObject && v.Type != bson.TypeArray }

// isServed says whether some demand bounds a wildcard's value; x must be good for it where it is there for no other field.
func (x Index) isServed(demands []predicate) bool {
	return len(x.wild.paths) == 0 || slices.ContainsFunc(demands, func(d predicate) bool {
		return d.path == x.Fields[x.wild.field+1].Path && x.serves(d.node)
	})
}

// leaves widens bounds that objects lie in: their values have keys at longer paths, and are to be found there.
func (x Index) leaves(s Intervals, t tightness) (Intervals, tightness) {
	for _, i := range s {
		if x.compare(i.Low, bson.EmptyArr) < 0 && x.compare(i.High, bson.EmptyDoc.Value()) > 0 {
			return All(), loose
		}
		if i.IsPoint() && i.Low.Type == bson.TypeObject {
			t = loose // it stands for what has fields that the index leaves out, too
		}
	}
	return s, t
}

// pathBounds are the paths of the keys to walk when the values that the wildcard stands for are within value: those below
// them, too, when it is all.
func (x Index) pathBounds(value Intervals) (s Intervals) {
	if len(x.wild.paths) == 0 {
		return Intervals{Point(bson.MinKey), Interval{bson.EmptyStr, bson.EmptyDoc.Value(), true, false}}
	}
	above := "\x00"
	for _, path := range x.wild.paths {
		if value.IsAll() && strings.HasPrefix(path, above) {
			continue // the keys of the path above it are walked with all below
		}
		s = append(s, Point(bson.String(path)))
		if value.IsAll() {
			above = path + "."
			s = append(s, Interval{bson.String(above), bson.String(path + "/"), true, false})
		}
	}
	return s
}

// Dedups says whether a document may be found by more than one key of the scan.
func (n *IndexScan) Dedups() bool {
	if w := n.Index.wild; w != nil && !n.Bounds[w.field].ArePoints() {
		return true
	}
	return n.Index.IsMultikey() && !n.Once
}
