package command

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/ebbdb/ebb/internal/testseed"
)

// TestVectorSearchByIndexes: a search finds the same with ordinary indexes on the fields of its filter as without.
func TestVectorSearchByIndexes(t *testing.T) {
	h, r := newHarness(t), rand.New(rand.NewPCG(testseed.Of(t), 0))
	value := func() string {
		return [...]string{"0", "1", "2", "NumberLong(1)", "1.5", "NaN", "'a'", "'B'", "null", "true", "false", "ISODate('2026-01-01T00:00:00Z')",
			"ObjectId('0123456789abcdef01234567')", "UUID('11111111-2222-4333-8444-000000000001')"}[r.IntN(14)]
	}
	var docs []string
	for i := range 150 {
		field := func(name string) string {
			switch r.IntN(6) {
			case 0:
				return ""
			case 1:
				return fmt.Sprintf(", %s: [%s, %s]", name, value(), value())
			case 2:
				return fmt.Sprintf(", %s: {b: %s}", name, value())
			case 3:
				return fmt.Sprintf(", %s: [{b: %s}, {b: [%s, %s]}, %s]", name, value(), value(), value(), value())
			}
			return fmt.Sprintf(", %s: %s", name, value())
		}
		docs = append(docs, fmt.Sprintf("{_id: %d, v: [%d.0, 1.0]%s%s}", i, r.IntN(9), field("a"), field("c")))
	}
	definition := "{fields: [{type: 'vector', path: 'v', numDimensions: 2, similarity: 'euclidean'}, {type: 'filter', path: 'a'}, {type: 'filter', path: 'a.b'}, {type: 'filter', path: 'c'}]}"
	for _, name := range []string{"plain", "indexed"} {
		h.ok(t, "test", fmt.Sprintf("{create: '%s', collation: {locale: 'en', strength: 2}}", name))
		h.ok(t, "test", fmt.Sprintf("{insert: '%s', documents: [%s]}", name, strings.Join(docs, ", ")))
		h.ok(t, "test", fmt.Sprintf("{createSearchIndexes: '%s', indexes: [{name: 'i', type: 'vectorSearch', definition: %s}]}", name, definition))
	}
	h.ok(t, "test", "{createIndexes: 'indexed', indexes: [{key: {a: 1}, name: 'a'}, {key: {'a.b': 1}, name: 'ab'}, {key: {c: 1}, name: 'c', collation: {locale: 'simple'}}, {key: {a: 1}, name: 'as', collation: {locale: 'simple'}, sparse: true}]}")
	var condition func(depth int) string
	condition = func(depth int) string {
		path := [...]string{"a", "'a.b'", "c"}[r.IntN(3)]
		kind := r.IntN(8)
		if depth == 0 {
			kind %= 4
		}
		switch kind {
		case 0:
			return fmt.Sprintf("{%s: %s}", path, value())
		case 1:
			return fmt.Sprintf("{%s: {%s: %s}}", path, [...]string{"$gt", "$gte", "$lt", "$lte", "$ne", "$eq"}[r.IntN(6)], value())
		case 2:
			return fmt.Sprintf("{%s: {%s: [%d, %d.5]}}", path, [...]string{"$in", "$nin"}[r.IntN(2)], r.IntN(3), r.IntN(3))
		case 3:
			return fmt.Sprintf("{%s: {$exists: %v}}", path, r.IntN(2) == 0)
		case 4:
			return fmt.Sprintf("{%s: {$not: {$gt: %s}}}", path, value())
		}
		return fmt.Sprintf("{%s: [%s, %s]}", [...]string{"$and", "$or", "$nor"}[kind-5], condition(depth-1), condition(depth-1))
	}
	found := func(name, filter, parent string) string {
		reply := h.ok(t, "test", fmt.Sprintf("{aggregate: '%s', pipeline: [{$vectorSearch: {index: 'i', path: 'v', queryVector: [3, 1], exact: true, limit: 1000, filter: %s, parentFilter: %s}}, {$sort: {_id: 1}}, {$project: {_id: 1, s: {$meta: 'vectorSearchScore'}}}], cursor: {batchSize: 1000}}",
			name, filter, parent))
		return reply.Lookup("cursor").Doc().Lookup("firstBatch").String()
	}
	some := 0
	for range 400 {
		filter, parent := condition(2), condition(1)
		if r.IntN(2) == 0 {
			parent = "{}"
		}
		plain, indexed := found("plain", filter, parent), found("indexed", filter, parent)
		if plain != indexed {
			t.Fatalf("%s and %s: without indexes\n%s\nwith them\n%s", filter, parent, plain, indexed)
		}
		if plain != "[]" {
			some++
		}
	}
	if some < 100 {
		t.Errorf("only %d of the filters let anything through", some)
	}
	used := h.ok(t, "test", "{aggregate: 'indexed', pipeline: [{$indexStats: {}}, {$group: {_id: 1, n: {$sum: '$accesses.ops'}}}], cursor: {}}")
	if n := used.Lookup("cursor").Doc().Lookup("firstBatch").Doc().Index(0).Doc().Lookup("n"); n.AsDouble() < 50 {
		t.Errorf("indexes were used %s times", n)
	}
}
