package query

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/ebbdb/ebb/internal/bson"
	"github.com/ebbdb/ebb/internal/fieldpath"
)

// TestRandomCounts tries counts and distinct values: from keys alone they are what all documents give.
func TestRandomCounts(t *testing.T) { tryWorlds(t, world{}, (*tried).tryValues) }

func (x *tried) tryValues() bool {
	q := x.ask()
	q.Sort, q.Projection = nil, nil
	key := x.world.path()
	docs, err := x.run(Find{NS: q.NS, Filter: q.Filter, Hint: natural()}, q)
	if err != nil {
		return false
	}
	c := Count{NS: q.NS, Filter: q.Filter, Skip: q.Skip, Limit: q.Limit}
	x.sameCount(q, c, clampCount(int64(len(docs)), c), bson.Missing)
	x.sameValues(q, key, docs, bson.Missing)
	x.allValues(q)
	for _, d := range x.coll.Indexes {
		if !d.Sparse && d.PartialFilter == nil {
			x.sameCount(q, c, clampCount(int64(len(docs)), c), bson.String(d.Name))
			x.sameValues(q, key, docs, bson.String(d.Name))
		}
	}
	return true
}

// allValues looks at the values of all documents, which a walk of an index with keys of arrays may give.
func (x *tried) allValues(q *asked) {
	all := *q
	all.Filter, all.Skip, all.Limit = nil, 0, 0
	docs, err := x.run(Find{NS: q.NS, Hint: natural()}, &all)
	x.must(err)
	key := x.world.path()
	if paths := x.world.indexed(); len(paths) > 0 && x.world.chance(70) {
		key = x.world.pick(paths...)
	}
	if strings.Contains(key, "$") {
		return
	}
	x.sameValues(&all, key, docs, bson.Missing)
}

func (x *tried) asked(q *asked) *Call {
	call := x.call()
	call.Collation, call.Collated = q.collation, q.collated
	return call
}

func (x *tried) sameCount(q *asked, c Count, want int64, hint bson.Value) {
	c.Hint = hint
	call := x.asked(q)
	n, err := x.engine.Count(context.Background(), c, call)
	if err != nil && !hint.IsMissing() && acceptable(err) {
		return
	}
	if err != nil || n != want {
		x.fail(q, hint, fmt.Sprintf("%s counts %d %v, not %d", call.PlanSummary, n, err, want))
	}
}

func (x *tried) sameValues(q *asked, key string, docs []bson.Doc, hint bson.Value) {
	call := x.asked(q)
	lang, err := x.engine.language(context.Background(), call, x.coll)
	x.must(err)
	set := newValueSet(lang)
	for _, d := range docs {
		fieldpath.Split(key).Values(d, fieldpath.Positions, set.add)
	}
	got, err := x.engine.Distinct(context.Background(), Distinct{NS: q.NS, Key: key, Filter: q.Filter, Hint: hint}, call)
	if err != nil && !hint.IsMissing() && acceptable(err) {
		return
	}
	if err != nil || !slices.Equal(lang.shapes(got), lang.shapes(set.array())) {
		x.fail(q, hint, fmt.Sprintf("%s: the values of %s are %s %v, not %s", call.PlanSummary, key, got, err, set.array()))
	}
}

// shapes are the elements of an array as bytes that are the same for equal values.
func (l *language) shapes(array bson.Value) (out []string) {
	if array.Type != bson.TypeArray {
		return nil
	}
	for it := array.Doc().Iter(); it.Next(); {
		out = append(out, string(l.canonical(nil, it.Value())))
	}
	return out
}
