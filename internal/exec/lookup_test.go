package exec

import (
	"testing"

	"github.com/ebbdb/ebb/internal/bson"
	"github.com/ebbdb/ebb/internal/namespace"
	"github.com/ebbdb/ebb/internal/pipeline"
)

// TestLookupKept runs a pipeline once that gives the same for every document, and anew for each one that draws random numbers.
func TestLookupKept(t *testing.T) {
	docs := []bson.Doc{mustDoc(t, `{_id: 1, r: 1}`), mustDoc(t, `{_id: 2, r: 2}`), mustDoc(t, `{_id: 3, r: 3}`)}
	const once, each = 2, 4 // the collection itself, and the other one
	for stages, want := range map[string]int{
		`[{$match: {r: 1}}]`:                                                                              once,
		`[{$match: {$expr: {$lt: ["$$NOW", "$r"]}}}]`:                                                     once,
		`[{$limit: 1}, {$addFields: {a: {$meta: "textScore"}}}]`:                                          once,
		`[{$addFields: {a: {$function: {body: "function() { return 1 }", args: [], lang: "js"}}}}]`:       once,
		`[{$sample: {size: 1}}]`:                                                                          each,
		`[{$match: {$sampleRate: 0.5}}]`:                                                                  each,
		`[{$match: {$expr: {$lt: [{$rand: {}}, 2]}}}]`:                                                    each,
		`[{$project: {a: {$add: [1, {$rand: {}}]}}}]`:                                                     each,
		`[{$group: {_id: null, a: {$sum: {$rand: {}}}}}]`:                                                 each,
		`[{$redact: {$cond: [{$lt: [{$rand: {}}, 2]}, "$$KEEP", "$$KEEP"]}}]`:                             each,
		`[{$setWindowFields: {output: {a: {$sum: {$rand: {}}}}}}]`:                                        each,
		`[{$facet: {a: [{$sample: {size: 1}}]}}]`:                                                         each,
		`[{$unionWith: {pipeline: [{$documents: [{a: {$rand: {}}}]}]}}]`:                                  7,  // and the union's
		`[{$lookup: {from: "c", pipeline: [{$sample: {size: 1}}], as: "b"}}]`:                             13, // each of three for each of three
		`[{$lookup: {from: "c", pipeline: [{$match: {r: 1}}], as: "b"}}]`:                                 3,
		`[{$addFields: {a: {$rand: {}}}}, {$lookup: {from: "c", pipeline: [{$match: {r: 1}}], as: "b"}}]`: 7, // one within each
	} {
		db := &collections{colls: map[string][]bson.Doc{"c": docs}}
		op := newTestOp(db, nil)
		ns := namespace.NS{DB: "db", Coll: "c"}
		text := `[{$lookup: {from: "c", pipeline: ` + stages + `, as: "found"}}]`
		p, err := op.Parser.Parse(bson.MustParse(text), pipeline.Options{NS: ns})
		if err != nil {
			t.Fatal(stages, err)
		}
		if out, err := db.results(op, ns, p); err != nil || len(out) != len(docs) {
			t.Errorf("%s: %d documents, %v", stages, len(out), err)
		}
		if db.opened != want {
			t.Errorf("%s has opened %d pipelines, not %d", stages, db.opened, want)
		}
	}
}
