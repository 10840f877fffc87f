package match

import (
	"slices"

	"github.com/ebbdb/ebb/internal/bson"
	"github.com/ebbdb/ebb/internal/collation"
	"github.com/ebbdb/ebb/internal/fieldpath"
)

// In matches what equals one of Values or matches one of Regexes. NewIn makes it.
type In struct {
	Path fieldpath.Path
	// Values are in MongoDB's order under the collation, each once.
	Values    []bson.Value
	Regexes   []*Regex
	Collation *collation.Collation

	null bool
}

// NewIn sorts values, which it keeps, and takes out those that are there twice.
func NewIn(path fieldpath.Path, values []bson.Value, regexes []*Regex, c *collation.Collation) *In {
	compare := func(a, b bson.Value) int { return compareUnder(c, a, b) }
	slices.SortStableFunc(values, compare)
	values = slices.CompactFunc(values, func(a, b bson.Value) bool { return compare(a, b) == 0 })
	null := slices.ContainsFunc(values, func(v bson.Value) bool { return v.Type == bson.TypeNull })
	return &In{path, values, regexes, c, null}
}

func (n *In) match(c run, s subject) (bool, error) {
	return matchPath(n, c, n.Path, fieldpath.Traverse, s)
}

func (n *In) test(c run, v bson.Value) (bool, error) {
	if v.IsMissing() {
		return n.null, nil
	}
	lo, hi := 0, len(n.Values)
	for lo < hi {
		mid := int(uint(lo+hi) >> 1)
		switch d := compareUnder(n.Collation, n.Values[mid], v); {
		case d == 0:
			return true, nil
		case d < 0:
			lo = mid + 1
		default:
			hi = mid
		}
	}
	for _, r := range n.Regexes {
		if err := c.tick(); err != nil {
			return false, err
		}
		if ok, err := r.test(c, v); ok || err != nil {
			return ok, err
		}
	}
	return false, nil
}

func parseIn(p *parsing, path fieldpath.Path, arg bson.Value, _ bson.Doc) (Node, error) {
	if arg.Type != bson.TypeArray {
		return nil, badValue("$in needs an array")
	}
	return p.in(path, arg.Doc())
}

func parseNin(p *parsing, path fieldpath.Path, arg bson.Value, _ bson.Doc) (Node, error) {
	if arg.Type != bson.TypeArray {
		return nil, badValue("$nin needs an array")
	}
	n, err := p.in(path, arg.Doc())
	if err != nil {
		return nil, err
	}
	return &Not{n}, nil
}

func (p *parsing) in(path fieldpath.Path, array bson.Doc) (Node, error) {
	var values []bson.Value
	var regexes []*Regex
	for it := array.Iter(); it.Next(); {
		if err := p.ask(); err != nil {
			return nil, err
		}
		v := it.Value()
		switch {
		case isOperators(v, false):
			return nil, badValue("cannot nest $ under $in")
		case v.Type == bson.TypeUndefined:
			return nil, badValue("InMatchExpression equality cannot be undefined")
		case v.Type == bson.TypeRegex:
			r, err := parseRegexValue(path, v)
			if err != nil {
				return nil, err
			}
			regexes = append(regexes, r)
		default:
			values = append(values, v)
		}
	}
	return NewIn(path, values, regexes, p.Collation), nil
}
