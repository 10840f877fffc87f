package pipeline

import (
	"errors"
	"fmt"
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

// TestManyMatches makes one of many $match that have to be moved first, and stops when the operation has ended.
func TestManyMatches(t *testing.T) {
	const matches, fields = 400, 50
	var stages strings.Builder
	for i := range matches {
		stages.WriteString(`{$match: {`)
		for f := range fields {
			fmt.Fprintf(&stages, `f%d: %d, `, f, i)
		}
		stages.WriteString(`}}, `)
		if i%100 == 0 {
			stages.WriteString(`{$set: {other: 1}}, `)
		}
	}
	all := bson.MustParse(`[` + stages.String() + `]`)
	o := Options{NS: namespace.NS{DB: "db", Coll: "c"}}
	p, err := testParser().Parse(all, o)
	if err != nil {
		t.Fatal(err)
	}
	first, ok := p.Stages[0].(*Match)
	if !ok || len(p.Stages) != 1+matches/100 {
		t.Fatalf("%d stages", len(p.Stages))
	}
	if n := len(match.Conjuncts(first.Filter.Root)); n != matches*fields {
		t.Errorf("%d conditions, not %d", n, matches*fields)
	}

	ended, filters := errors.New("ended"), match.NewParser()
	for left := range 8 {
		asked := 0
		exprs := expr.NewParser(expr.Options{Interrupt: func() error {
			if asked++; asked > left {
				return ended
			}
			return nil
		}})
		_, err := NewParser(NewTable(), exprs, filters, projection.NewParser(filters), nil).Parse(all, o)
		if !errors.Is(err, ended) || asked != left+1 {
			t.Errorf("asked %d times: %v", asked, err)
		}
	}
}

// TestProjectsOfManyFields moves a filter of as many fields as a $project has before it.
func TestProjectsOfManyFields(t *testing.T) {
	const n = 20_000
	for _, value := range []string{`1`, `0`, `"$g"`} {
		var project, filter strings.Builder
		for i := range n {
			fmt.Fprintf(&project, `f%d: %s, `, i, value)
			fmt.Fprintf(&filter, `%s%d: 1, `, map[string]string{"1": "f", "0": "h", `"$g"`: "f"}[value], i)
		}
		p, err := testParser().Parse(bson.MustParse(`[{$project: {`+project.String()+`}}, {$match: {`+filter.String()+`}}]`), Options{NS: namespace.NS{DB: "db", Coll: "c"}})
		if err != nil {
			t.Fatal(err)
		}
		if m, ok := p.Stages[0].(*Match); !ok || len(match.Conjuncts(m.Filter.Root)) != n || len(p.Stages) != 2 {
			t.Errorf("{$project: {f0: %s, …}}: the $match has not moved", value)
		}
	}
}
