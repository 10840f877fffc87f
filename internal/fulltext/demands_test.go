package fulltext

import (
	"testing"

	"github.com/ebbdb/ebb/internal/bson"
	"github.com/ebbdb/ebb/internal/fulltext/mapping"
)

// TestDemands: what a query asks of values is asked of ordinary indexes where it means the same there.
func TestDemands(t *testing.T) {
	d, err := mapping.Parse(bson.MustDoc(`{mappings: {dynamic: true, fields: {t: {type: "token"}, l: {type: "token", normalizer: "lowercase"}, w: {type: "number", representation: "int64"}}}}`))
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ spec, want string }{
		{`{text: {query: "x", path: "title"}}`, `{}`},
		{`{equals: {path: "n", value: 5}}`, `{$and: [{n: {$in: [5]}}]}`},
		{`{in: {path: "t", value: ["a", "b"]}}`, `{$and: [{t: {$in: ["a", "b"]}}]}`},
		{`{in: {path: ["t", "u"], value: ["a"]}}`, `{}`},
		{`{equals: {path: "l", value: "a"}}`, `{}`},
		{`{equals: {path: "w", value: 5}}`, `{}`},
		{`{equals: {path: "n", value: null}}`, `{}`},
		{`{equals: {path: "n", value: NumberLong("9007199254740993")}}`, `{}`},
		{`{equals: {path: "n", value: NaN}}`, `{}`},
		{`{range: {path: "n", gt: 1, lte: 2.5}}`, `{$and: [{n: {$gt: 1, $lte: 2.5}}]}`},
		{`{range: {path: "d", gte: ISODate("2020-01-01T00:00:00Z"), score: {boost: {value: 2}}}}`, `{$and: [{d: {$gte: ISODate("2020-01-01T00:00:00Z")}}]}`},
		{`{compound: {filter: [{equals: {path: "n", value: 5}}], must: {range: {path: "t", lt: "x"}}, mustNot: {equals: {path: "b", value: true}}, should: {equals: {path: "c", value: true}}}}`,
			`{$and: [{n: {$in: [5]}}, {t: {$lt: "x"}}]}`},
		{`{facet: {operator: {equals: {path: "b", value: true}}, facets: {n: {type: "number", path: "n", boundaries: [1, 2]}}}}`, `{$and: [{b: {$in: [true]}}]}`},
		{`{facet: {facets: {n: {type: "number", path: "n", boundaries: [1, 2]}}}}`, `{}`},
	} {
		q, err := ParseQuery(bson.MustDoc(c.spec), false)
		if err != nil {
			t.Fatalf("%s: %v", c.spec, err)
		}
		if got := q.Demands(d); !bson.Equal(got.Value(), bson.MustDoc(c.want).Value()) {
			t.Errorf("%s: %s, not %s", c.spec, got, c.want)
		}
	}
}
