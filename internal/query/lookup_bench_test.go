package query

import (
	"context"
	"testing"

	"github.com/ebbdb/ebb/internal/bson"
	"github.com/ebbdb/ebb/internal/namespace"
)

// BenchmarkLookup joins 1000 documents with one of 10 000 each; cpu-ns/join is for each of them, and finds by _id beside it
// are its measure.
func BenchmarkLookup(b *testing.B) {
	e := lookupEngine(b)
	ctx, ns := context.Background(), namespace.NS{DB: "test", Coll: "outer"}
	run := func(b *testing.B, joins int, each func() error) {
		used := cpuMicros()
		for range b.N {
			if err := each(); err != nil {
				b.Fatal(err)
			}
		}
		b.ReportMetric(float64(cpuMicros()-used)*1000/float64(b.N*joins), "cpu-ns/join")
	}
	b.Run("find", func(b *testing.B) {
		run(b, 1000, func() error {
			for i := range 1000 {
				r, err := e.Find(ctx, Find{NS: namespace.NS{DB: "test", Coll: "inner"}, Filter: bson.Build().Int32("_id", int32(i)).Doc()}, &Call{Now: testTime})
				if err != nil {
					return err
				}
				if err := r.All(ctx, func(bson.Doc) error { return nil }); err != nil {
					return err
				}
			}
			return nil
		})
	})
	for _, c := range []struct{ name, stage string }{
		{"id", "{from: 'inner', localField: 'k', foreignField: '_id', as: 'j'}"},
		{"index", "{from: 'inner', localField: 'k', foreignField: 'k', as: 'j'}"},
		{"two_indexes", "{from: 'inner', localField: 'k', foreignField: 'k', pipeline: [{$match: {g: {$gte: 0}}}], as: 'j'}"},
		{"expr", "{from: 'inner', let: {k: '$k'}, pipeline: [{$match: {$expr: {$eq: ['$k', '$$k']}}}], as: 'j'}"},
	} {
		pipeline := bson.MustDoc("{p: [{$lookup: " + c.stage + "}]}").Lookup("p")
		b.Run(c.name, func(b *testing.B) {
			run(b, 1000, func() error {
				r, err := e.Aggregate(ctx, Aggregate{NS: ns, Pipeline: pipeline}, &Call{Now: testTime})
				if err != nil {
					return err
				}
				n := 0
				err = r.All(ctx, func(d bson.Doc) error { n += d.Lookup("j").Doc().Count(); return nil })
				if n != 1000 {
					b.Fatal(n)
				}
				return err
			})
		})
	}
}

func lookupEngine(b *testing.B) *Engine {
	e := benchInMemory(b)
	inner := namespace.NS{DB: "test", Coll: "inner"}
	benchFill(b, e, namespace.NS{DB: "test", Coll: "outer"}, 1000, numbered)
	benchFill(b, e, inner, 10_000, numbered)
	benchIndexes(b, e, inner, "{v: 2, name: 'k', key: {k: 1}}", "{v: 2, name: 'g', key: {g: 1}}")
	return e
}
