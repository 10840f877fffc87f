package query

import (
	"context"

	"github.com/ebbdb/ebb/internal/bson"
	"github.com/ebbdb/ebb/internal/fieldpath"
	"github.com/ebbdb/ebb/internal/mongoerr"
	"github.com/ebbdb/ebb/internal/namespace"
)

// Distinct is what a distinct asks for.
type Distinct struct {
	NS     namespace.NS
	Key    string
	Filter bson.Doc
	Hint   bson.Value
}

// Distinct is an array of the values that matching documents have at the key, each once, arrays by their elements.
func (e *Engine) Distinct(ctx context.Context, d Distinct, call *Call) (bson.Value, error) {
	path, err := fieldpath.New(d.Key)
	if err != nil {
		return bson.Missing, err
	}
	call.NoNow = true
	r, err := e.Find(ctx, Find{NS: d.NS, Filter: d.Filter, Hint: d.Hint}, call)
	if err != nil {
		return bson.Missing, err
	}
	set := newValueSet(r.lang)
	err = r.All(ctx, func(doc bson.Doc) error {
		path.Walk(doc, fieldpath.Elements, func(v bson.Value, _ int) bool {
			if !v.IsMissing() {
				set.add(v)
			}
			return false
		})
		if set.size > bson.MaxDocSize {
			return mongoerr.New(17217, "distinct too big, 16mb cap")
		}
		return nil
	})
	if err != nil {
		return bson.Missing, err
	}
	return set.array(), nil
}

// valueSet keeps values that compare equal once, in the order in which they came.
type valueSet struct {
	lang   *language
	seen   map[string]struct{}
	values []bson.Value
	size   int
	key    []byte
}

func newValueSet(lang *language) *valueSet {
	return &valueSet{lang: lang, seen: map[string]struct{}{}}
}

func (s *valueSet) add(v bson.Value) {
	s.key = s.lang.canonical(s.key[:0], v)
	if _, there := s.seen[string(s.key)]; there {
		return
	}
	s.seen[string(s.key)] = struct{}{}
	s.values = append(s.values, v.Clone())
	s.size += len(v.Data) + 8
}

func (s *valueSet) array() bson.Value { return bson.ArrayOf(s.values...) }
