package pipeline

import (
	"testing"

	"github.com/ebbdb/ebb/internal/bson"
	"github.com/ebbdb/ebb/internal/namespace"
)

func TestRules(t *testing.T) {
	for _, c := range []struct {
		stages, level     string
		concerned, stable bool
		within            bool // a transaction
	}{
		{`[{$match: {a: 1}}]`, "linearizable", true, true, true},
		{`[{$planCacheStats: {}}]`, "local", true, false, false},
		{`[{$planCacheStats: {}}]`, "majority", false, false, false},
		{`[{$out: "x"}]`, "majority", true, true, false},
		{`[{$out: "x"}]`, "linearizable", false, true, false},
		{`[{$collStats: {count: {}}}]`, "local", true, true, false},
		{`[{$collStats: {storageStats: {}}}]`, "local", true, false, false},
		{`[{$unionWith: {coll: "x", pipeline: [{$indexStats: {}}]}}]`, "local", true, false, false},
		{`[{$lookup: {from: "x", pipeline: [{$match: {}}], as: "y"}}]`, "local", true, true, true},
		{`[{$lookup: {from: "x", pipeline: [{$unionWith: "z"}], as: "y"}}]`, "local", true, true, false},
		{`[{$facet: {f: [{$match: {}}]}}]`, "local", true, true, true},
	} {
		p, err := testParser().Parse(bson.MustParse(c.stages), Options{NS: namespace.NS{DB: "db", Coll: "c"}})
		if err != nil {
			t.Fatal(err)
		}
		if err := CheckReadConcern(bson.MustParse(c.stages), c.level); (err == nil) != c.concerned {
			t.Errorf("%s with %s: %v", c.stages, c.level, err)
		}
		if err := p.CheckTransaction(); (err == nil) != c.within {
			t.Errorf("%s: %v", c.stages, err)
		}
		if err := p.CheckStable(); (err == nil) != c.stable {
			t.Errorf("%s: %v", c.stages, err)
		}
	}
}
