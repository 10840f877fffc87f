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
	}{
		{`[{$match: {a: 1}}]`, "linearizable", true, true},
		{`[{$planCacheStats: {}}]`, "local", true, false},
		{`[{$planCacheStats: {}}]`, "majority", false, false},
		{`[{$out: "x"}]`, "majority", true, true},
		{`[{$out: "x"}]`, "linearizable", false, true},
		{`[{$collStats: {count: {}}}]`, "local", true, true},
		{`[{$collStats: {storageStats: {}}}]`, "local", true, false},
		{`[{$unionWith: {coll: "x", pipeline: [{$indexStats: {}}]}}]`, "local", true, false},
	} {
		p, err := testParser().Parse(bson.MustParse(c.stages), Options{NS: namespace.NS{DB: "db", Coll: "c"}})
		if err != nil {
			t.Fatal(err)
		}
		if err := p.CheckReadConcern(c.level); (err == nil) != c.concerned {
			t.Errorf("%s with %s: %v", c.stages, c.level, err)
		}
		if err := p.CheckStable(); (err == nil) != c.stable {
			t.Errorf("%s: %v", c.stages, err)
		}
	}
}
