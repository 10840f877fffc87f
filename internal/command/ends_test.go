package command

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/ebbdb/ebb/internal/accumulator"
	"github.com/ebbdb/ebb/internal/bson"
	"github.com/ebbdb/ebb/internal/clock"
	"github.com/ebbdb/ebb/internal/match"
	"github.com/ebbdb/ebb/internal/pipeline"
	"github.com/ebbdb/ebb/internal/update"
)

const (
	// endAfter is when operations are ended.
	endAfter = 20 * time.Millisecond
	// endsLate is far more than an operation may go on then: a second is what is allowed, on a machine with time.
	endsLate = 10 * time.Second
	// endsSlowly is what the log tells of.
	endsSlowly = 300 * time.Millisecond
)

var errEnded = errors.New("ended")

// endless makes a pipeline's documents so many that nothing goes through all of them: 300 with two arrays of 3000 elements.
const endless = `{$unwind: "$a"}, {$unwind: "$b"}`

// computed makes fields of what endless has made, so that a filter on them cannot be asked before.
const computed = `, {$addFields: {c: {$concatArrays: ["$c", ["$a"]]}, s: {$concat: ["$s", {$toString: "$a"}]}, n: {$add: ["$n", "$a"]}}}`

func endlessly(h *harness, t *testing.T) {
	numbers := make([]bson.Value, 3000)
	for i := range numbers {
		numbers[i] = bson.Int32(int32(i))
	}
	var docs []bson.Value
	for i := range 300 {
		docs = append(docs, bson.Build().Int32("_id", int32(i)).Value("a", bson.ArrayOf(numbers...)).Value("b", bson.ArrayOf(numbers...)).
			Value("c", bson.ArrayOf(numbers[:200]...)).Int32("n", int32(i)).String("s", strings.Repeat("some words ", 200)).Date("d", int64(i)).
			Array("at").Int32("0", int32(i%90)).Int32("1", 5).End().Doc().Value())
	}
	for _, command := range []bson.Doc{
		bson.Build().String("insert", "c").Value("documents", bson.ArrayOf(docs[:150]...)).Doc(),
		bson.Build().String("insert", "c").Value("documents", bson.ArrayOf(docs[150:]...)).Doc(),
		bson.MustDoc(`{createIndexes: "c", indexes: [{key: {at: "2dsphere"}, name: "at"}, {key: {s: "text"}, name: "s"}]}`),
		bson.MustDoc(`{createSearchIndexes: "c", indexes: [{definition: {mappings: {dynamic: true}}}]}`),
	} {
		if reply := h.send(t.Context(), "1", "test", command).Body; !reply.Lookup("ok").Truthy() || !reply.Lookup("writeErrors").IsMissing() {
			t.Fatalf("%.300s", reply)
		}
	}
}

// ends runs a command, ends it soon, and says how it took that.
func (h *harness) ends(t *testing.T, name string, command bson.Doc) {
	t.Helper()
	ctx, cancel := context.WithCancelCause(t.Context())
	ended := make(chan time.Time, 1)
	timer := time.AfterFunc(endAfter, func() {
		ended <- clock.Wall().Now()
		cancel(errEnded)
	})
	reply := h.send(ctx, "1", "test", command).Body
	if timer.Stop() {
		cancel(nil)
		if !quick()[name] && !strings.HasPrefix(name, "update ") {
			t.Errorf("%s: over before it was ended: %.200s", name, reply)
		}
		return
	}
	late := clock.Since(clock.Wall(), <-ended)
	switch {
	case late > endsLate:
		t.Errorf("%s: went on for %v: %.200s", name, late, reply)
	case late > endsSlowly:
		t.Logf("%s: went on for %v: %.200s", name, late, reply)
	}
}

// quick are those that there is nothing long to do with: statistics, what is refused, and searches that 300 documents end;
// updates of so many documents may be over, too.
func quick() map[string]bool {
	out := map[string]bool{}
	for _, name := range []string{"$_internalAllCollectionStats", "$changeStream", "$changeStreamSplitLargeEvent", "$collStats", "$currentOp", "$documents", "$ebbTTL", "$indexStats",
		"$listCatalog", "$listClusterCatalog", "$listLocalSessions", "$listSampledQueries", "$listSearchIndexes", "$listSessions", "$planCacheStats",
		"$querySettings", "$queryStats", "$searchMeta", "$vectorSearch", "$text", "$near", "$nearSphere", "$geoNear"} {
		out[name] = true
	}
	return out
}

func aggregateOf(stages string) bson.Doc {
	return bson.MustDoc(`{aggregate: "c", cursor: {}, allowDiskUse: true, pipeline: [` + stages + `]}`)
}

// stageArguments are arguments of stages: "first " before one that stands at the beginning, "none " before {aggregate: 1}.
func stageArguments() map[string]string {
	return map[string]string{
		"$addFields": `{x: {$add: ["$a", "$b"]}}`, "$set": `{x: {$add: ["$a", "$b"]}}`, "$bucket": `{groupBy: "$a", boundaries: [0, 10, 5000]}`,
		"$bucketAuto": `{groupBy: "$a", buckets: 5}`, "$count": `"n"`, "$densify": `{field: "n", range: {step: 0.0001, bounds: [0, 1000000]}}`,
		"$facet": `{x: [{$match: {a: -1}}], y: [{$group: {_id: "$b"}}]}`, "$fill": `{sortBy: {n: 1}, output: {x: {method: "linear"}}}`,
		"$graphLookup": `{from: "c", startWith: "$n", connectFromField: "n", connectToField: "c", as: "x"}`, "$group": `{_id: {a: "$a", b: "$b"}}`,
		"$limit": `1000000000`, "$skip": `1000000000`, "$lookup": `{from: "c", localField: "n", foreignField: "a", as: "x"}`, "$match": `{c: -1}`,
		"$merge": `"m"`, "$out": `"o"`, "$project": `{a: 1}`, "$redact": `"$$DESCEND"`, "$replaceRoot": `{newRoot: "$$ROOT"}`, "$replaceWith": `"$$ROOT"`,
		"$sample": `{size: 10}`, "$setWindowFields": `{sortBy: {a: 1}, output: {x: {$sum: "$b", window: {documents: [-100, 100]}}}}`,
		"$sort": `{b: 1, a: -1}`, "$sortByCount": `"$a"`, "$unionWith": `"c"`, "$unset": `"a"`, "$unwind": `"$c"`,
		"$geoNear":    `first {near: {type: "Point", coordinates: [1, 1]}, distanceField: "x"}`,
		"$score":      `{score: "$a", scoreDetails: false}`,
		"$rankFusion": `first {input: {pipelines: {x: [{$sort: {s: 1}}], y: [{$sort: {n: 1}}]}}}`, "$scoreFusion": `first {input: {pipelines: {x: [{$score: {score: "$n"}}]}, normalization: "none"}}`,
		"$documents": `none [{x: 1}]`, "$currentOp": `none {}`, "$querySettings": `none {}`, "$queryStats": `none {}`, "$listLocalSessions": `none {}`,
		"$_internalAllCollectionStats": `none {stats: {count: {}}}`, "$listSampledQueries": `none {}`, "$listClusterCatalog": `none {}`, "$listSessions": `first {}`,
		"$ebbTTL": `first {}`, "$collStats": `first {count: {}}`, "$indexStats": `first {}`, "$listCatalog": `first {}`, "$listSearchIndexes": `first {}`, "$planCacheStats": `first {}`,
		"$changeStream": `first {}`, "$changeStreamSplitLargeEvent": `{}`, "$search": `first {text: {query: "words", path: "s"}}`,
		"$searchBeta": `first {text: {query: "words", path: "s"}}`, "$searchMeta": `first {text: {query: "words", path: "s"}}`,
		"$vectorSearch": `first {index: "i", path: "v", queryVector: [1], exact: true, limit: 10}`,
	}
}

// TestStagesEnd ends each stage of the table while it has more to do than it ever could.
func TestStagesEnd(t *testing.T) {
	h := newHarness(t)
	endlessly(h, t)
	const more = `, {$addFields: {a: {$range: [0, 3000]}, b: {$range: [0, 3000]}}}, {$unwind: "$a"}, {$unwind: "$b"}, {$match: {a: -1}}`
	for _, row := range pipeline.Rows() {
		arg, ok := stageArguments()[row.Name]
		if !ok {
			t.Errorf("%s has no argument here: add one", row.Name)
			continue
		}
		stages := endless + computed + `, {"` + row.Name + `": ` + arg + `}`
		collection := `"c"`
		if text, first := strings.CutPrefix(arg, "first "); first {
			stages = `{"` + row.Name + `": ` + text + `}` + more
		} else if text, none := strings.CutPrefix(arg, "none "); none {
			stages, collection = `{"`+row.Name+`": `+text+`}`+more, `1`
		} else if row.Name == "$out" || row.Name == "$merge" { // which would end at the first _id that comes again
			stages = endless + computed + `, {$unset: "_id"}, {"` + row.Name + `": ` + arg + `}`
		} else {
			stages += `, {$match: {a: -1}}`
		}
		h.ends(t, row.Name, bson.MustDoc(`{aggregate: `+collection+`, cursor: {}, allowDiskUse: true, pipeline: [`+stages+`]}`))
	}
}

// TestAccumulatorsEnd does so with each accumulator, in $group or where it is none of those, over a window.
func TestAccumulatorsEnd(t *testing.T) {
	h := newHarness(t)
	endlessly(h, t)
	arguments := map[string]string{
		"$accumulator": `{init: "function() { return 0 }", accumulate: "function(s, x) { for (;;); }", accumulateArgs: ["$a"], merge: "function(a, b) { return a }", lang: "js"}`,
		"$bottom":      `{sortBy: {a: 1}, output: "$b"}`, "$top": `{sortBy: {a: 1}, output: "$b"}`, "$count": `{}`, "$concatArrays": `"$c"`, "$setUnion": `"$c"`,
		"$bottomN": `{n: 5, sortBy: {a: 1}, output: "$b"}`, "$topN": `{n: 5, sortBy: {a: 1}, output: "$b"}`, "$mergeObjects": `"$$ROOT"`,
		"$firstN": `{n: 5, input: "$b"}`, "$lastN": `{n: 5, input: "$b"}`, "$maxN": `{n: 5, input: "$b"}`, "$minN": `{n: 5, input: "$b"}`,
		"$median": `{input: "$a", method: "approximate"}`, "$percentile": `{input: "$a", p: [0.5], method: "approximate"}`,
		"$covariancePop": `["$a", "$b"]`, "$covarianceSamp": `["$a", "$b"]`, "$denseRank": `{}`, "$rank": `{}`, "$documentNumber": `{}`,
		"$expMovingAvg": `{input: "$a", N: 5}`, "$shift": `{output: "$a", by: 1}`, "$minMaxScaler": `{input: "$a"}`,
	}
	for _, op := range accumulator.Operators() {
		arg := arguments[op.Name]
		if arg == "" {
			arg = `"$a"`
		}
		stage := `{$group: {_id: "$n", x: {"` + op.Name + `": ` + arg + `}}}`
		if op.Group == nil {
			window := ""
			if op.Name == "$derivative" || op.Name == "$integral" {
				arg, window = `{input: "$a"}`, `, window: {documents: [-100, 100]}`
			}
			stage = `{$setWindowFields: {sortBy: {b: 1}, output: {x: {"` + op.Name + `": ` + arg + window + `}}}}`
		}
		h.ends(t, op.Name, aggregateOf(endless+`, `+stage))
	}
}

// manyNumbers is an array of n different ones.
func manyNumbers(n int) string {
	var b strings.Builder
	b.WriteByte('[')
	for i := range n {
		fmt.Fprintf(&b, "%d,", i*7919%1000003+3000)
	}
	return strings.TrimSuffix(b.String(), ",") + "]"
}

// spikes is a polygon that is much work to check and to compare.
func spikes(n int) string {
	var b strings.Builder
	b.WriteString(`{type: "Polygon", coordinates: [[`)
	for i := range n + 1 {
		at, r := 2*math.Pi*float64(i%n)/float64(n), 20*(1+0.5*float64(i%n%2))
		fmt.Fprintf(&b, "[%.12f,%.12f],", r*math.Cos(at), r*math.Sin(at))
	}
	return strings.TrimSuffix(b.String(), ",") + "]]}"
}

// TestQueryOperatorsEnd does so with each operator of filters.
func TestQueryOperatorsEnd(t *testing.T) {
	h := newHarness(t)
	endlessly(h, t)
	inMatch := map[string]string{
		"$all": `{c: {$all: [1, 2, -3]}}`, "$elemMatch": `{c: {$elemMatch: {$gt: 5, $lt: 3}}}`, "$size": `{c: {$size: 7}}`,
		"$bitsAllClear": `{c: {$bitsAllClear: 4294967295}, a: -1}`, "$bitsAllSet": `{c: {$bitsAllSet: 4294967295}}`,
		"$bitsAnyClear": `{s: {$bitsAnyClear: 1}}`, "$bitsAnySet": `{s: {$bitsAnySet: 1}}`,
		"$eq": `{c: {$eq: -1}}`, "$gt": `{c: {$gt: 5000}}`, "$gte": `{c: {$gte: 5000}}`, "$lt": `{c: {$lt: -1}}`, "$lte": `{c: {$lte: -1}}`, "$ne": `{n: {$ne: 1}, a: -1}`,
		"$in": `{c: {$in: ` + manyNumbers(50_000) + `}}`, "$nin": `{c: {$nin: [1]}}`,
		"$comment": `{$comment: "x", a: -1}`, "$sampleRate": `{$sampleRate: 0.5, c: -1}`, "$alwaysTrue": `{$alwaysTrue: 1, a: -1}`, "$alwaysFalse": `{$or: [{$alwaysFalse: 1}, {c: -1}]}`,
		"$ref": `{a: {$ref: "x", $id: 1}}`, "$id": `{a: {$id: 1, $ref: "x"}}`, "$db": `{a: {$ref: "x", $id: 1, $db: "x"}}`,
		"$exists": `{a: {$exists: false}}`, "$type": `{a: {$type: "string"}}`, "$expr": `{$expr: {$in: [-1, "$c"]}}`,
		"$jsonSchema": `{$jsonSchema: {properties: {c: {uniqueItems: true, maxItems: 1}}}}`, "$mod": `{c: {$mod: [1000, 999]}}`,
		"$regex": `{s: {$regex: "(o|w)+\\1x$"}}`, "$options": `{s: {$regex: "(O|W)+\\1X$", $options: "i"}}`,
		"$geoWithin": `{at: {$geoWithin: {$geometry: ` + spikes(50_000) + `}}}`, "$within": `{at: {$within: {$geometry: ` + spikes(20_000) + `}}}`,
		"$geoIntersects": `{at: {$geoIntersects: {$geometry: ` + spikes(50_000) + `}}}`,
		"$and":           `{$and: [{a: {$gte: 0}}, {c: -1}]}`, "$or": `{$or: [{a: -1}, {c: -1}]}`, "$nor": `{$nor: [{a: {$gte: 0}}, {c: -1}]}`, "$not": `{c: {$not: {$gte: 0}}}`,
	}
	inFind := map[string]string{
		"$where": `{$where: "function() { for (;;); }"}`, "$text": `{$text: {$search: "some words"}}`, "$near": `{at: {$near: {$geometry: {type: "Point", coordinates: [1, 1]}}}}`,
		"$nearSphere": `{at: {$nearSphere: [1, 1]}}`, "$geoNear": `{at: {$geoNear: {$geometry: {type: "Point", coordinates: [1, 1]}}}}`,
	}
	for _, op := range match.NewParser().Operators() {
		if filter, ok := inMatch[op.Name]; ok {
			h.ends(t, op.Name, aggregateOf(endless+computed+`, {$match: `+filter+`}`))
		} else if filter, ok := inFind[op.Name]; ok {
			h.ends(t, op.Name, bson.MustDoc(`{find: "c", filter: `+filter+`}`))
		} else {
			t.Errorf("%s has no filter here: add one", op.Name)
		}
	}
	h.ends(t, "explain", bson.MustDoc(`{explain: {aggregate: "c", cursor: {}, pipeline: [`+endless+`]}, verbosity: "executionStats"}`))
	h.ends(t, "insert under 2dsphere", bson.MustDoc(`{insert: "c", documents: [{_id: "spikes", at: `+spikes(50_000)+`}]}`))
}

// TestUpdateOperatorsEnd does so with each modifier: an update of many documents.
func TestUpdateOperatorsEnd(t *testing.T) {
	h := newHarness(t)
	endlessly(h, t)
	arguments := map[string]string{
		"$addToSet": `{c: {$each: ` + manyNumbers(3000) + `}}`, "$bit": `{n: {xor: 1}}`, "$currentDate": `{x: true}`, "$inc": `{"b.$[]": 1}`, "$max": `{"c.$[]": 5000}`,
		"$min": `{"c.$[]": -5}`, "$mul": `{"b.$[]": 3}`, "$pop": `{b: 1}`, "$pull": `{c: {$gt: 100}}`, "$pullAll": `{b: ` + manyNumbers(3000) + `}`,
		"$push": `{c: {$each: ` + manyNumbers(3000) + `, $sort: -1}}`, "$rename": `{n: "m"}`, "$set": `{"c.$[]": "x"}`, "$setOnInsert": `{x: 1}`, "$unset": `{a: 1}`,
	}
	for _, op := range update.Operators() {
		arg, ok := arguments[op.Name]
		if !ok {
			t.Errorf("%s has no argument here: add one", op.Name)
			continue
		}
		h.ends(t, "update "+op.Name, bson.MustDoc(`{update: "c", updates: [{q: {}, u: {`+op.Name+`: `+arg+`}, multi: true}]}`))
	}
}
