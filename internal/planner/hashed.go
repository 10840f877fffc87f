package planner

import (
	"github.com/ebbdb/ebb/internal/bson"
	"github.com/ebbdb/ebb/internal/collation"
	"github.com/ebbdb/ebb/internal/index"
	"github.com/ebbdb/ebb/internal/match"
)

// hashedBounds are the hashes of the values that n asks for in x's i-th field, a hashed one. Other values may have the same
// hash. No document has an array there.
func (x Index) hashedBounds(n match.Node, query *collation.Collation) (s Intervals, ok bool) {
	switch n := n.(type) {
	case *match.Compare:
		if n.Op == match.Eq {
			return x.hashes([]bson.Value{n.Value}, query)
		}
	case *match.In:
		if len(n.Regexes) == 0 {
			return x.hashes(n.Values, query)
		}
	case *match.Exists:
		return All(), true
	case *match.Not:
		if _, exists := n.Child.(*match.Exists); exists {
			return x.hashes([]bson.Value{bson.Null}, query)
		}
	}
	return nil, false
}

func (x Index) hashes(values []bson.Value, query *collation.Collation) (s Intervals, ok bool) {
	s = make(Intervals, 0, len(values))
	for _, v := range values {
		if v.Type == bson.TypeArray || hasStrings(v) && !collation.Equal(x.Collator(), query) {
			return nil, false
		}
		s = append(s, Point(x.Hash(v)))
	}
	return normalize(x.compare, s), true
}

// isHashed says whether the i-th field of x has hashes in the place of values.
func (x Index) isHashed(i int) bool { return x.Fields[i].Kind == index.Hashed }
