package query

import (
	"context"
	"slices"

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

// Distinct is an array of the values that matching documents have at the key, each once and in order, arrays by their
// elements.
func (e *Engine) Distinct(ctx context.Context, d Distinct, call *Call) (bson.Value, error) {
	f := Find{NS: d.NS, Filter: d.Filter, Hint: d.Hint}
	e.settle(call, d.NS, func() string { return findShape("distinct "+d.Key, f, call) })
	r, err := e.findDistinct(ctx, f, d.Key, call)
	if err != nil {
		return bson.Missing, err
	}
	path, digits := fieldpath.Split(d.Key), fieldpath.Positions
	if call.OnView { // where the key becomes a path in a pipeline
		digits = fieldpath.Names
		if path, err = fieldpath.New(d.Key); err != nil {
			_ = r.Close()
			return bson.Missing, err
		}
	}
	set := newValueSet(r.lang)
	call.Executing = true
	err = r.All(ctx, func(doc bson.Doc) error {
		path.Values(doc, digits, set.add)
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

// findDistinct opens a find of documents of which only what is at key is read.
func (e *Engine) findDistinct(ctx context.Context, f Find, key string, call *Call) (*Running, error) {
	if coll := e.lookup(f.NS, call); coll != nil && coll.IsView() {
		return e.find(ctx, f, call)
	} else if coll != nil && coll.IsTimeSeries() { // which MongoDB shows as a view of its buckets
		call.OnView = true
	}
	call.NoNow = true
	if err := call.rejected(); err != nil {
		return nil, err
	}
	p, err := e.prepareFor(ctx, &prepared{Find: f, call: call, distinct: key})
	if err != nil {
		return nil, err
	}
	return e.open(ctx, p)
}

// valueSet keeps values that compare equal once: the first.
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

// array is the values in order.
func (s *valueSet) array() bson.Value {
	var collator bson.Collator
	if s.lang.collation != nil {
		collator = s.lang.collation
	}
	slices.SortFunc(s.values, func(a, b bson.Value) int { return bson.CompareWith(a, b, collator) })
	return bson.ArrayOf(s.values...)
}
