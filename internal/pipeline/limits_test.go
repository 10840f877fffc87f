package pipeline

import (
	"errors"
	"strings"
	"testing"

	"github.com/ebbdb/ebb/internal/bson"
	"github.com/ebbdb/ebb/internal/expr"
	"github.com/ebbdb/ebb/internal/match"
	"github.com/ebbdb/ebb/internal/mongoerr"
	"github.com/ebbdb/ebb/internal/namespace"
	"github.com/ebbdb/ebb/internal/projection"
)

func testParser() *Parser {
	filters := match.NewParser()
	return NewParser(NewTable(), expr.NewParser(expr.Options{}), filters, projection.NewParser(filters), nil)
}

func parseCode(t *testing.T, stages string) mongoerr.Code {
	t.Helper()
	_, err := testParser().Parse(bson.MustParse(stages), Options{NS: namespace.NS{DB: "db", Coll: "c"}})
	var e *mongoerr.Error
	switch {
	case err == nil:
		return 0
	case errors.As(err, &e):
		return e.Code
	}
	t.Fatalf("not an error of MongoDB: %v", err)
	return 0
}

func TestLimits(t *testing.T) {
	many := func(n int) string { return "[" + strings.Repeat("{$skip: 0}, ", n) + "{$limit: 1}]" }
	nested := func(n int) string {
		return strings.Repeat(`[{$lookup: {from: "x", as: "y", pipeline: `, n) + "[]" + strings.Repeat("}}]", n)
	}
	for _, c := range []struct {
		stages string
		want   mongoerr.Code
	}{
		{many(MaxStages - 1), 0}, {many(MaxStages), 7749501}, {nested(MaxDepth), 0}, {nested(MaxDepth + 1), mongoerr.MaxSubPipelineDepthExceeded},
	} {
		if got := parseCode(t, c.stages); got != c.want {
			t.Errorf("%.60s…: code %d, want %d", c.stages, got, c.want)
		}
	}
}

// TestParseAnything gives every stage arguments of every kind, alone and under every name that stages read: whatever comes,
// the answer is a pipeline that can be printed or one of MongoDB's errors.
func TestParseAnything(t *testing.T) {
	values := []string{
		"null", "undefined", "1", "-1", "0", "1.5", "NaN", "1e300", "NumberLong(\"9223372036854775807\")", `NumberDecimal("1E+6000")`, `""`, `"a"`, `"$a"`, `"$$a"`,
		`"a.b"`, `"\u0000"`, "{}", "{a: 1}", `{$a: 1}`, `{"": 1}`, "[]", "[1]", `["a"]`, "[[]]", "[{}]", `[{$match: {}}]`, "true", "MinKey", "/a/",
		`ISODate("2020-01-01T00:00:00Z")`, `{$literal: [1, 2]}`, `{$sum: "$a"}`, `{x: {$sum: "$a", window: {documents: [-1, 1]}}}`, `{step: 1, bounds: "full"}`,
	}
	names := []string{
		"from", "as", "localField", "foreignField", "let", "pipeline", "path", "includeArrayIndex", "preserveNullAndEmptyArrays", "size", "newRoot", "groupBy",
		"boundaries", "default", "output", "buckets", "granularity", "into", "on", "whenMatched", "whenNotMatched", "db", "coll", "timeseries", "field", "range",
		"partitionByFields", "partitionBy", "sortBy", "near", "distanceField", "key", "query", "maxDistance", "startWith", "connectFromField", "connectToField",
		"maxDepth", "depthField", "restrictSearchWithMatch", "latencyStats", "storageStats", "count", "allHosts", "_id", "a",
	}
	base := map[string]string{
		"$lookup": `from: "x", as: "y"`, "$bucket": `groupBy: "$a", boundaries: [1, 2]`, "$bucketAuto": `groupBy: "$a", buckets: 2`, "$merge": `into: "x"`,
		"$densify": `field: "a", range: {step: 1, bounds: "full"}`, "$graphLookup": `from: "x", startWith: 1, connectFromField: "a", connectToField: "b", as: "c"`,
		"$setWindowFields": `sortBy: {a: 1}, output: {}`, "$fill": `output: {a: {value: 1}}`, "$geoNear": `near: [0, 0], distanceField: "d"`, "$out": `db: "d", coll: "c"`,
	}
	p := testParser()
	try := func(stage, arg string) {
		v, err := bson.Parse("[{" + stage + ": " + arg + "}]")
		if err != nil {
			t.Fatal(err)
		}
		for _, ns := range []namespace.NS{{DB: "db", Coll: "c"}, {DB: "admin"}} {
			pl, err := p.Parse(v, Options{NS: ns})
			var e *mongoerr.Error
			switch {
			case err == nil:
				pl.Print()
				pl.Leading()
				pl.Namespaces()
			case !errors.As(err, &e):
				t.Errorf("%s: %s: not an error of MongoDB: %v", stage, arg, err)
			}
		}
	}
	for _, row := range Rows() {
		for _, v := range values {
			try(row.Name, v)
			for _, name := range names {
				try(row.Name, "{"+name+": "+v+"}")
				if b := base[row.Name]; b != "" {
					try(row.Name, "{"+b+", "+name+": "+v+"}")
				}
			}
		}
	}
}
