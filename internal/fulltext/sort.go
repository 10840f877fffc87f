package fulltext

import (
	"strings"

	"github.com/ebbdb/ebb/internal/bson"
	"github.com/ebbdb/ebb/internal/fieldpath"
	"github.com/ebbdb/ebb/internal/fulltext/spec"
)

// orderKey is one field that results are ordered by.
type orderKey struct {
	path     string
	relevant bool // by the score, in place of a path
	down     bool
	last     bool // what has no value is above all others
}

// readOrder reads the option "sort", or its older form.
func (q *Query) readOrder(a *spec.Reader) {
	name := a.Only("sort", "sortBetaV1")
	a.Value("sort")
	a.Value("sortBetaV1")
	if name == "" {
		return
	}
	sub := a.RequiredInner(name)
	if a.Err() == nil && sub.Doc().IsEmpty() {
		a.RefuseField(name, "Sort spec must have at least one sort field defined")
	}
	if sub.Doc().Count() > maxClauses {
		a.Keep(tooManyClauses())
		return
	}
	for it := sub.Doc().Iter(); it.Next(); {
		q.order = append(q.order, readOrderKey(sub, strings.Clone(it.Key()), it.Value()))
	}
}

func readOrderKey(a *spec.Reader, path string, v bson.Value) orderKey {
	k := orderKey{path: path}
	if v.IsNumber() {
		k.down = readDirection(a, path, v)
		return k
	}
	if v.Type != bson.TypeObject {
		a.RefuseField(path, "must be a number or document")
		return k
	}
	sub := a.Inside(a.Path(path), v)
	meta, order := sub.Choice("$meta", "", "searchScore"), sub.Value("order")
	k.relevant = meta != ""
	k.last = sub.Choice("noData", "lowest", "lowest", "highest") == "highest"
	switch {
	case k.relevant && sub.Has("noData"):
		sub.Refuse("at most one of [$meta, noData] may be present")
	case order.IsMissing() && !k.relevant:
		sub.Refuse(`"order" is required`)
	case order.IsMissing():
		k.down = true
	default:
		k.down = readDirection(sub, "order", order)
	}
	sub.Done()
	return k
}

func readDirection(a *spec.Reader, name string, v bson.Value) (down bool) {
	n, whole := v.AsInt64()
	if !v.IsNumber() || !whole || n != 1 && n != -1 {
		a.RefuseField(name, "sort order must be 1 or -1")
	}
	return n < 0
}

// sorter takes from documents what results are ordered by.
type sorter struct {
	key orderKey
	at  fieldpath.Path
	of  func(bson.Value) (bson.Value, bool)
}

func (s *scope) sorters(keys []orderKey) []sorter {
	out := make([]sorter, len(keys))
	for i, k := range keys {
		out[i] = sorter{key: k}
		if k.relevant {
			continue
		}
		f := s.field(k.path)
		out[i].at = s.values(k.path)
		out[i].of = func(v bson.Value) (bson.Value, bool) { return indexed(f, v) }
	}
	return out
}

// value is the least of a document's values, or the greatest where the order goes down; missing where it has none.
func (s *sorter) value(doc bson.Doc) (best bson.Value) {
	if s.key.relevant {
		return bson.Missing
	}
	s.at.Values(doc, fieldpath.Names, func(v bson.Value) {
		v, ok := s.of(v)
		if !ok {
			return
		}
		if c := 0; !best.IsMissing() {
			if c = bson.Compare(v, best); s.key.down {
				c = -c
			}
			if c >= 0 {
				return
			}
		}
		best = v
	})
	return best.Clone()
}

// compare orders two documents by one key.
func (s *sorter) compare(a, b *hit, i int) int {
	c := 0
	switch x, y := a.keys[i], b.keys[i]; {
	case s.key.relevant:
		c = orderNumbers(float64(a.score), float64(b.score))
	case x.IsNullish() && y.IsNullish():
	case x.IsNullish() || y.IsNullish():
		c = -1
		if x.IsNullish() == s.key.last {
			c = 1
		}
	default:
		c = bson.Compare(x, y)
	}
	if s.key.down {
		return -c
	}
	return c
}
