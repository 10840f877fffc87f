package exec

import (
	"context"
	"errors"
	"testing"

	"github.com/ebbdb/ebb/internal/bson"
	"github.com/ebbdb/ebb/internal/namespace"
	"github.com/ebbdb/ebb/internal/pipeline"
)

// endless never ends; it cancels the operation after a while and counts what is still asked for.
type endless struct {
	cancel context.CancelCauseFunc
	after  int
	late   int
	doc    bson.Doc
}

var errStopped = errors.New("stopped")

func (e *endless) Next(context.Context) (bson.Doc, error) {
	if e.after--; e.after == 0 {
		e.cancel(errStopped)
	}
	if e.after < 0 {
		e.late++
	}
	if e.late > 1000 {
		panic("a stage goes on after the operation was stopped")
	}
	return e.doc, nil
}

func (e *endless) Close() error { return nil }

// TestInterrupt stops each stage that reads more than one document for one of its own.
func TestInterrupt(t *testing.T) {
	doc := mustDoc(t, `{_id: 1, a: 1, e: [], x: 1}`)
	for _, stages := range []string{
		`[{$match: {a: 2}}]`, `[{$match: {$expr: {$eq: ["$a", 2]}}}]`, `[{$sort: {a: 1}}]`, `[{$sort: {a: 1}}, {$limit: 2}]`, `[{$skip: 1000000}]`,
		`[{$count: "n"}]`, `[{$group: {_id: "$a", n: {$sum: 1}}}]`, `[{$unwind: "$e"}]`, `[{$redact: "$$PRUNE"}]`, `[{$sample: {size: 3}}]`,
		`[{$bucketAuto: {groupBy: "$a", buckets: 3}}]`, `[{$facet: {a: [{$match: {a: 2}}]}}]`, `[{$setWindowFields: {output: {n: {$sum: 1}}}}]`,
		`[{$densify: {field: "x", range: {step: 1, bounds: "full"}}}]`, `[{$out: "x"}]`, `[{$merge: "x"}]`,
		`[{$unionWith: "c"}, {$match: {a: 2}}]`,
	} {
		op := newTestOp(&collections{colls: map[string][]bson.Doc{}}, nil)
		op.TempDir = t.TempDir()
		p, err := op.Parser.Parse(bson.MustParse(stages), pipeline.Options{NS: namespace.NS{DB: "db", Coll: "c"}})
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancelCause(context.Background())
		it, err := Build(op, p, &endless{cancel: cancel, after: 300, doc: doc})
		if err != nil {
			t.Fatal(err)
		}
		if d, err := it.Next(ctx); !errors.Is(err, errStopped) {
			t.Errorf("%s: %v, %v after it was stopped", stages, d, err)
		}
		if err := it.Close(); err != nil {
			t.Error(err)
		}
	}
}

// TestResultSize refuses a result that is larger than a document may be, and lets it be on the way.
func TestResultSize(t *testing.T) {
	big := bson.Build().String("s", string(make([]byte, 1<<20))).Doc()
	docs := make([]bson.Doc, 20)
	for i := range docs {
		docs[i] = big
	}
	run := func(stages string) ([]string, error) {
		db := &collections{colls: map[string][]bson.Doc{"c": docs}}
		op := newTestOp(db, nil)
		p, err := op.Parser.Parse(bson.MustParse(stages), pipeline.Options{NS: namespace.NS{DB: "db", Coll: "c"}})
		if err != nil {
			t.Fatal(err)
		}
		return db.results(op, namespace.NS{DB: "db", Coll: "c"}, p)
	}
	if _, err := run(`[{$group: {_id: null, all: {$push: "$s"}}}]`); err == nil || errorText(err)[:11] != "error 10334" {
		t.Errorf("a result of 20 MiB: %v", err)
	}
	got, err := run(`[{$group: {_id: null, all: {$push: "$s"}}}, {$project: {n: {$size: "$all"}}}]`)
	if err != nil || got[0] != "{ _id: null, n: 20 }\n" {
		t.Errorf("what is large on the way only: %v, %v", got, err)
	}
	if _, err := run(`[{$facet: {a: [{$project: {s: 1}}]}}]`); err == nil || errorText(err)[:11] != "error 10334" {
		t.Errorf("a facet of 20 MiB: %v", err)
	}
	if _, err := run(`[{$group: {_id: null, all: {$push: {$concat: ["$s", "$s", "$s", "$s", "$s", "$s"]}}}}]`); err == nil || errorText(err)[:9] != "error 146" {
		t.Errorf("an array of 120 MiB: %v", err)
	}
}
