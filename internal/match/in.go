package match

import (
	"slices"

	"github.com/ebbdb/ebb/internal/bson"
	"github.com/ebbdb/ebb/internal/collation"
	"github.com/ebbdb/ebb/internal/fieldpath"
	"github.com/ebbdb/ebb/internal/ordering"
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
	n, _ := newIn(path, values, regexes, c, nil)
	return n
}

// newIn is NewIn that asks now and then; the error is the answer.
func newIn(path fieldpath.Path, values []bson.Value, regexes []*Regex, c *collation.Collation, ask func() error) (*In, error) {
	compare := func(a, b bson.Value) int { return compareUnder(c, a, b) }
	if err := ordering.StableSized(values, compare, func(v bson.Value) int { return len(v.Data) }, ask); err != nil {
		return nil, err
	}
	values = slices.CompactFunc(values, func(a, b bson.Value) bool { return compare(a, b) == 0 })
	null := slices.ContainsFunc(values, func(v bson.Value) bool { return v.Type == bson.TypeNull })
	return &In{path, values, regexes, c, null}, nil
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
			r, err := p.regexValue(path, v)
			if err != nil {
				return nil, err
			}
			regexes = append(regexes, r)
		default:
			values = append(values, v)
		}
	}
	return newIn(path, values, regexes, p.Collation, p.Exprs.Interrupt())
}
