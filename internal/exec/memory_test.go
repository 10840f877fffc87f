package exec

import (
	"context"
	"fmt"
	"os"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/ebbdb/ebb/internal/bson"
	"github.com/ebbdb/ebb/internal/clock"
	"github.com/ebbdb/ebb/internal/memory"
	"github.com/ebbdb/ebb/internal/mongoerr"
	"github.com/ebbdb/ebb/internal/namespace"
	"github.com/ebbdb/ebb/internal/pipeline"
)

// holdingStages keep much in memory between two documents of their results.
var holdingStages = []string{
	`[{$sort: {k: 1, n: -1}}]`,
	`[{$sort: {k: 1}}, {$limit: 3000}]`,
	`[{$group: {_id: "$n", all: {$push: "$pad"}, s: {$sum: "$k"}}}]`,
	`[{$setWindowFields: {partitionBy: "$part", sortBy: {n: 1}, output: {s: {$sum: "$k", window: {documents: [-3, 2]}}, m: {$max: "$n"}}}}]`,
	`[{$limit: 500}, {$lookup: {from: "c", localField: "k", foreignField: "n", as: "found"}}, {$project: {n: 1, f: {$size: "$found"}}}]`,
	`[{$lookup: {from: "c", pipeline: [{$limit: 3000}], as: "found"}}, {$limit: 200}, {$project: {n: 1, f: {$size: "$found"}}}]`,
	`[{$sort: {k: 1}}, {$group: {_id: "$k", n: {$sum: 1}, pads: {$push: {$concat: ["$pad", "$pad"]}}}}, {$unwind: "$pads"}, {$sort: {_id: -1}}]`,
	`[{$densify: {field: "n", range: {step: 1, bounds: "full"}}}]`,
}

// holdingDocs are some megabytes.
func holdingDocs() (docs []bson.Doc) {
	pad := strings.Repeat("x", 500)
	for i := range 3800 {
		docs = append(docs, bson.Build().Int32("_id", int32(i)).Int32("n", int32(i*7919%3803)).Int32("k", int32(i%17)).
			Int32("part", int32(i%3)).String("pad", pad).Doc())
	}
	return docs
}

// openStages has stages run on the collection "c".
func openStages(t *testing.T, op *Op, stages string) (Iterator, error) {
	t.Helper()
	ns := namespace.NS{DB: "db", Coll: "c"}
	p, err := op.Parser.Parse(bson.MustParse(stages), pipeline.Options{NS: ns})
	if err != nil {
		t.Fatal(err)
	}
	return op.Catalog.Open(t.Context(), op, ns, p)
}

// runHolding gives the results of stages; between is called after every 97th document.
func runHolding(t *testing.T, op *Op, stages string, between func()) (out []string, err error) {
	t.Helper()
	it, err := openStages(t, op, stages)
	if err != nil {
		return nil, err
	}
	defer it.Close()
	for i := 1; ; i++ {
		d, err := it.Next(context.Background())
		if d == nil || err != nil {
			return out, err
		}
		out = append(out, d.Text())
		if i%97 == 0 {
			op.Park()
			between()
		}
	}
}

// What a parked operation holds goes to files, and its results stay what they are.
func TestShrinkWhileParked(t *testing.T) {
	db := &collections{colls: map[string][]bson.Doc{"c": holdingDocs()}}
	for _, stages := range holdingStages {
		want, err := runHolding(t, newTestOp(db, nil), stages, func() {})
		if err != nil {
			t.Fatal(err)
		}
		op := newTestOp(db, nil)
		op.TempDir, op.Memory = t.TempDir(), &memory.Account{}
		most, least := int64(0), int64(1<<60)
		got, err := runHolding(t, op, stages, func() {
			before := op.Memory.Used()
			if err := op.Shrink(); err != nil {
				t.Fatal(err)
			}
			if before >= 1<<20 {
				most, least = max(most, before-carriedTimes*int64(op.carried)), min(least, op.Memory.Used()-carriedTimes*int64(op.carried))
			}
		})
		if err != nil {
			t.Fatal(err)
		}
		if strings.HasPrefix(stages, `[{$group`) { // whose order is nobody's promise
			slices.Sort(want)
			slices.Sort(got)
		}
		if !slices.Equal(got, want) {
			t.Errorf("%s: %d documents, not the %d that there should be, or others", stages, len(got), len(want))
		}
		if most < 1<<20 || least > most/2 {
			t.Errorf("%s: held %d bytes, and then %d", stages, most, least)
		}
		if left := op.Memory.Used() - carriedTimes*int64(op.carried); left != 0 {
			t.Errorf("%s: %d bytes are still counted", stages, left)
		}
	}
}

// Where the server has little memory stages go on in files, with the same results; those that may not are refused.
func TestLittleMemory(t *testing.T) {
	db := &collections{colls: map[string][]bson.Doc{"c": holdingDocs()}}
	for i, stages := range holdingStages {
		if i == 5 {
			continue // its documents alone are more than that
		}
		want, err := runHolding(t, newTestOp(db, nil), stages, func() {})
		if err != nil {
			t.Fatal(err)
		}
		g := memory.New(2<<20, clock.Wall(), nil)
		op := newTestOp(db, nil)
		op.TempDir, op.Memory = t.TempDir(), &memory.Account{}
		op.Memory.Open(g, memory.Operators)
		got, err := runHolding(t, op, stages, func() {})
		if err != nil {
			t.Fatalf("%s: %v", stages, err)
		}
		if strings.HasPrefix(stages, `[{$group`) {
			slices.Sort(want)
			slices.Sort(got)
		}
		if !slices.Equal(got, want) {
			t.Errorf("%s: %d documents, not the %d that there should be, or others", stages, len(got), len(want))
		}
		if s := g.Stats(); s.Used != 0 && op.Memory.Used() != 0 {
			t.Errorf("%s: %+v", stages, s)
		}
		if left, _ := os.ReadDir(op.TempDir); len(left) > 0 {
			t.Errorf("%s: %d temporary files left", stages, len(left))
		}
		if i == 1 || i > 3 {
			continue // the first needs less, the others read what they keep again, or are the same
		}
		op.AllowDiskUse, op.UsedDisk = false, false
		if _, err := runHolding(t, op, stages, func() {}); !mongoerr.Is(err, mongoerr.ExceededMemoryLimit) || op.UsedDisk {
			t.Errorf("%s without disk: %v", stages, err)
		}
		op.Memory.Close()
	}
}

// Runs are merged a few times each, however many there are, and stay in order.
func TestManyRuns(t *testing.T) {
	var docs []bson.Doc
	for i := range 20_000 {
		docs = append(docs, bson.Build().Int32("n", int32(i*7919%20_011)).String("pad", "some text").Doc())
	}
	op := newTestOp(&collections{colls: map[string][]bson.Doc{"c": docs}}, nil)
	op.TempDir, op.MaxMemory = t.TempDir(), 1000
	last := ""
	got, err := runHolding(t, op, `[{$sort: {n: 1}}, {$project: {n: {$toString: {$add: ["$n", 100000]}}}}]`, func() {})
	if err != nil || len(got) != len(docs) {
		t.Fatalf("%d, %v", len(got), err)
	}
	for _, d := range got {
		if d < last {
			t.Fatal(fmt.Sprint(d, " behind ", last))
		}
		last = d
	}
}

// TestLargeDocumentsAreLetGo: the stages that a large document has come through do not keep it, each in memory of its own.
func TestLargeDocumentsAreLetGo(t *testing.T) {
	const stages, documentBytes, most = 60, 1 << 20, 10 << 20
	pad := strings.Repeat("x", documentBytes)
	large := bson.Build().Int32("_id", 1).Array("one").Int32("0", 1).End().String("pad", pad).Doc()
	for _, stage := range []string{
		`{$addFields: {n: {$add: ["$_id", %d]}}}`,
		`{$project: {n%d: 0, one: 0}}`,
		`{$replaceWith: {$mergeObjects: ["$$ROOT", {n: %d}]}}`,
		`{$redact: {$cond: [{$eq: ["$_id", -%d]}, "$$PRUNE", "$$KEEP"]}}`,
		`{$lookup: {from: "d", localField: "pad", foreignField: "n%d", as: "found"}}`,
		`{$graphLookup: {from: "d", startWith: "$_id", connectFromField: "n%d", connectToField: "m", as: "found"}}`,
		`{$group: {_id: {pad: "$pad", n: {$literal: %d}}, pad: {$first: "$pad"}}}`,
	} {
		op := newTestOp(&collections{colls: map[string][]bson.Doc{"c": {large}, "d": {mustDoc(t, "{_id: 1}")}}}, nil)
		var all []string
		for i := range stages {
			all = append(all, fmt.Sprintf(stage, i))
		}
		it, err := openStages(t, op, "["+strings.Join(all, ", ")+"]")
		if err != nil {
			t.Fatal(err)
		}
		before := liveBytes()
		d, err := it.Next(t.Context())
		if err != nil || len(d) < documentBytes {
			t.Fatalf("%s: %d bytes, %v", stage, len(d), err)
		}
		if kept := liveBytes() - before; kept > most {
			t.Errorf("%d stages like %s keep %d bytes", stages, stage, kept)
		}
		runtime.KeepAlive(d)
		if err := it.Close(); err != nil {
			t.Error(err)
		}
	}
}

// liveBytes is how much of the heap is in use.
func liveBytes() int64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

// TestUnwoundDocumentsAreCounted: a large document that a $unwind holds until it has made all of its documents is counted as long as it does.
func TestUnwoundDocumentsAreCounted(t *testing.T) {
	const documentBytes = 1 << 20
	large := bson.Build().Int32("_id", 1).Array("a").Int32("0", 1).Int32("1", 2).End().String("pad", strings.Repeat("x", documentBytes)).Doc()
	for stages, want := range map[string]int64{
		`[{$unwind: "$a"}]`:                                           documentBytes,
		`[{$unwind: "$a"}, {$unwind: "$a"}]`:                          documentBytes, // the second has nothing to do
		`[{$addFields: {b: "$a"}}, {$unwind: "$a"}, {$unwind: "$b"}]`: 2 * documentBytes,
		`[{$lookup: {from: "d", localField: "_id", foreignField: "k", as: "b"}}, {$unwind: "$b"}]`:                            documentBytes,
		`[{$lookup: {from: "d", localField: "_id", foreignField: "k", as: "b"}}, {$unwind: "$b"}, {$project: {_id: "$b.k"}}]`: documentBytes,
	} {
		op := newTestOp(&collections{colls: map[string][]bson.Doc{"c": {large}, "d": {mustDoc(t, "{k: 1, _id: 1}"), mustDoc(t, "{k: 1, _id: 2}")}}}, nil)
		op.Memory = &memory.Account{}
		op.Memory.OpenExact(memory.New(1<<30, clock.Wall(), nil), memory.Operators)
		it, err := openStages(t, op, stages)
		if err != nil {
			t.Fatal(err)
		}
		used := func() int64 { return op.Memory.Used() - carriedTimes*int64(op.carried) }
		if _, err := it.Next(t.Context()); err != nil || used() < want || used() > want+documentBytes/2 {
			t.Errorf("%s: %d bytes are counted, want %d; %v", stages, used(), want, err)
		}
		if err := Each(t.Context(), it, func(bson.Doc) error { return nil }); err != nil {
			t.Error(err)
		}
		if err := it.Close(); err != nil || used() > documentBytes/2 {
			t.Errorf("%s: %d bytes are counted in the end, %v", stages, used(), err)
		}
	}
}
