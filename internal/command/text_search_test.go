package command

import (
	"fmt"
	"strings"
	"testing"

	"github.com/ebbdb/ebb/internal/bson"
)

// TestTextSearchGoesOn: what a search has found is read when its turn comes, so a getMore gives it as it is then, and without what is gone.
func TestTextSearchGoesOn(t *testing.T) {
	h := newHarness(t)
	var docs []string
	for i := range 10 {
		docs = append(docs, fmt.Sprintf("{_id: %d, t: 'word%s'}", i, strings.Repeat(" filler", i)))
	}
	h.ok(t, "test", "{insert: 'c', documents: ["+strings.Join(docs, ", ")+"]}")
	h.ok(t, "test", "{createSearchIndexes: 'c', indexes: [{definition: {mappings: {dynamic: true}}}]}")
	reply := h.ok(t, "test", "{aggregate: 'c', pipeline: [{$search: {text: {query: 'word', path: 't'}, count: {type: 'total'}}}, {$project: {_id: 1, n: 1, m: '$$SEARCH_META.count.total'}}], cursor: {batchSize: 2}}")
	first := reply.Lookup("cursor").Doc()
	if got, want := first.Lookup("firstBatch").String(), "[ { _id: 0, m: 10 }, { _id: 1, m: 10 } ]"; got != want {
		t.Errorf("the first batch is %s, not %s", got, want)
	}
	h.ok(t, "test", "{delete: 'c', deletes: [{q: {_id: {$in: [2, 4, 9]}}, limit: 0}]}")
	h.ok(t, "test", "{update: 'c', updates: [{q: {_id: 5}, u: {$set: {n: 'new', t: 'other'}}}]}")
	h.ok(t, "test", "{insert: 'c', documents: [{_id: 11, t: 'word'}]}")
	id, _ := first.Lookup("id").AsInt64()
	var rest []bson.Value
	for id != 0 {
		next := h.ok(t, "test", fmt.Sprintf("{getMore: NumberLong('%d'), collection: 'c', batchSize: 2}", id)).Lookup("cursor").Doc()
		rest = next.Lookup("nextBatch").Doc().Values(rest)
		id, _ = next.Lookup("id").AsInt64()
	}
	want := "[ { _id: 3, m: 10 }, { _id: 5, n: \"new\", m: 10 }, { _id: 6, m: 10 }, { _id: 7, m: 10 }, { _id: 8, m: 10 } ]"
	if got := bson.ArrayOf(rest...).String(); got != want {
		t.Errorf("the rest is\n%s, not\n%s", got, want)
	}
}

// TestTextSearchLooksUpFew: a search looks at all documents once, and reads again those that are asked for.
func TestTextSearchLooksUpFew(t *testing.T) {
	h := newHarness(t)
	h.ok(t, "test", "{insert: 'c', documents: [{_id: 1, t: 'word'}, {_id: 2, t: 'word'}, {_id: 3, t: 'word'}]}")
	h.ok(t, "test", "{createSearchIndexes: 'c', indexes: [{definition: {mappings: {dynamic: true}}}]}")
	reply := h.ok(t, "test", "{explain: {aggregate: 'c', pipeline: [{$search: {text: {query: 'word', path: 't'}}}, {$limit: 1}], cursor: {}}, verbosity: 'executionStats'}")
	if n, _ := reply.Lookup("stages").Doc().Index(0).Doc().Lookup("nReturned").AsInt64(); n != 1 {
		t.Errorf("$search gave %d documents to a $limit of 1", n)
	}
}
