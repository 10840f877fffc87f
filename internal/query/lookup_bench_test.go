package query

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/ebbdb/ebb/internal/bson"
	"github.com/ebbdb/ebb/internal/catalog"
	"github.com/ebbdb/ebb/internal/clock"
	"github.com/ebbdb/ebb/internal/index"
	"github.com/ebbdb/ebb/internal/kv"
	"github.com/ebbdb/ebb/internal/kv/pebblekv"
	"github.com/ebbdb/ebb/internal/match"
	"github.com/ebbdb/ebb/internal/namespace"
	"github.com/ebbdb/ebb/internal/storage"
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
	ctx := context.Background()
	engine, err := pebblekv.OpenMemory(pebblekv.Options{CacheBytes: 64 << 20, MemTableBytes: 32 << 20})
	if err != nil {
		b.Fatal(err)
	}
	filters := match.NewParser()
	store, err := storage.Open(ctx, engine, storage.Options{Clock: clock.NewFake(time.UnixMilli(testTime)), Indexes: index.NewParser(filters),
		HideExpired: func() bool { return false }})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = store.Close(); _ = engine.Close() })
	e := New(store, filters)
	for name, n := range map[string]int{"outer": 1000, "inner": 10_000} {
		var docs []bson.Doc
		for i := range n {
			docs = append(docs, bson.MustDoc(fmt.Sprintf("{_id: %d, k: %d, g: %d, pad: '................................................................'}", i, i, i%100)))
		}
		ns := namespace.NS{DB: "test", Coll: name}
		if _, err := store.CreateCollection(ctx, ns, bson.EmptyDoc); err != nil {
			b.Fatal(err)
		}
		if _, _, err := e.Insert(ctx, ns, docs, true, &Call{Now: testTime, Durability: kv.Buffered}); err != nil {
			b.Fatal(err)
		}
	}
	_, err = store.CreateIndexes(ctx, namespace.NS{DB: "test", Coll: "inner"}, func(*catalog.Collection) (all []*index.Definition, err error) {
		for _, spec := range []string{"{v: 2, name: 'k', key: {k: 1}}", "{v: 2, name: 'g', key: {g: 1}}"} {
			d, err := index.NewParser(filters).Parse(bson.MustDoc(spec), nil)
			if err != nil {
				return nil, err
			}
			all = append(all, d)
		}
		return all, nil
	})
	if err != nil {
		b.Fatal(err)
	}
	return e
}
