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

// BenchmarkFind finds one document of 10 000 by its _id and by an index, and a hundred by a span of an index.
func BenchmarkFind(b *testing.B) {
	ctx, ns := context.Background(), namespace.NS{DB: "test", Coll: "c"}
	engine, err := pebblekv.OpenMemory(pebblekv.Options{CacheBytes: 64 << 20, MemTableBytes: 32 << 20})
	if err != nil {
		b.Fatal(err)
	}
	defer engine.Close()
	filters := match.NewParser()
	store, err := storage.Open(ctx, engine, storage.Options{Clock: clock.NewFake(time.UnixMilli(1e12)), Indexes: index.NewParser(filters),
		HideExpired: func() bool { return false }})
	if err != nil {
		b.Fatal(err)
	}
	defer store.Close()
	e := New(store, filters)
	if _, err := store.CreateCollection(ctx, ns, bson.EmptyDoc); err != nil {
		b.Fatal(err)
	}
	if _, err := store.CreateIndexes(ctx, ns, func(*catalog.Collection) (all []*index.Definition, err error) {
		for _, spec := range []string{"{v: 2, name: 'k', key: {k: 1}}", "{v: 2, name: 'g', key: {g: 1}}"} {
			d, err := index.NewParser(filters).Parse(bson.MustDoc(spec), nil)
			if err != nil {
				return nil, err
			}
			all = append(all, d)
		}
		return all, nil
	}); err != nil {
		b.Fatal(err)
	}
	call := func() *Call { return &Call{Now: 1e12, Durability: kv.Buffered} }
	var docs []bson.Doc
	for i := range 10_000 {
		docs = append(docs, bson.MustDoc(fmt.Sprintf("{_id: %d, k: %d, g: %d, pad: '................................................................'}", i, i, i%100)))
	}
	if _, _, err := e.Insert(ctx, ns, docs, true, call()); err != nil {
		b.Fatal(err)
	}
	for _, c := range []struct {
		name, filter string
		found        int
	}{
		{"id", "{_id: 5000}", 1}, {"index", "{k: 5000}", 1}, {"span", "{k: {$gte: 5000, $lt: 5100}}", 100},
		{"two_indexes", "{k: 5000, g: 0}", 1}, {"alternatives", "{$or: [{k: 5000}, {g: 77}]}", 101},
	} {
		filter := bson.MustDoc(c.filter)
		b.Run(c.name, func(b *testing.B) {
			b.ReportAllocs()
			for range b.N {
				r, err := e.Find(ctx, Find{NS: ns, Filter: filter}, call())
				if err != nil {
					b.Fatal(err)
				}
				n := 0
				if err := r.All(ctx, func(bson.Doc) error { n++; return nil }); err != nil || n != c.found {
					b.Fatal(n, err)
				}
			}
		})
	}
}
