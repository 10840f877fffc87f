package ttl_test

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"testing"

	"github.com/ebbdb/ebb/internal/bson"
	"github.com/ebbdb/ebb/internal/catalog"
	"github.com/ebbdb/ebb/internal/clock"
	"github.com/ebbdb/ebb/internal/host"
	"github.com/ebbdb/ebb/internal/index"
	"github.com/ebbdb/ebb/internal/kv"
	"github.com/ebbdb/ebb/internal/kv/pebblekv"
	"github.com/ebbdb/ebb/internal/match"
	"github.com/ebbdb/ebb/internal/namespace"
	"github.com/ebbdb/ebb/internal/operation"
	"github.com/ebbdb/ebb/internal/parameter"
	"github.com/ebbdb/ebb/internal/storage"
	"github.com/ebbdb/ebb/internal/ttl"
)

// BenchmarkPass deletes documents of 300 bytes, on disk, with an index on _id, the TTL index and one more. Time is per
// document.
func BenchmarkPass(b *testing.B) {
	for _, batch := range []int64{1, 10, 100} {
		for _, where := range []string{"in order", "at random"} {
			b.Run(fmt.Sprintf("batch=%d/%s", batch, where), func(b *testing.B) { benchmarkPass(b, batch, where == "at random") })
		}
	}
}

func benchmarkPass(b *testing.B, batch int64, random bool) {
	engine, err := pebblekv.Open(b.TempDir(), pebblekv.Options{})
	if err != nil {
		b.Fatal(err)
	}
	defer engine.Close()
	c := clock.NewFake(zero)
	registry := parameter.NewRegistry(nil)
	params := ttl.NewParameters(registry)
	if _, err := registry.Set("batchedDeletesTargetBatchDocs", bson.Int64(batch), parameter.Runtime); err != nil {
		b.Fatal(err)
	}
	m := ttl.New(ttl.Options{Clock: c, Params: params, Ops: operation.NewRegistry(c), Log: slog.New(slog.NewTextHandler(io.Discard, nil))})
	indexes := index.NewParser(match.NewParser())
	store, err := storage.Open(context.Background(), engine, storage.Options{Clock: c, Indexes: indexes, OnDDL: m.OnDDL, OnDeadline: m.OnDeadline})
	if err != nil {
		b.Fatal(err)
	}
	defer store.Close()
	m.Connect(store, ttl.Open{}, ttl.NoRecord{})
	ns := namespace.NS{DB: "db", Coll: "c"}
	for _, spec := range []string{`{key: {d: 1}, name: "d_1", expireAfterSeconds: 1}`, `{key: {user: 1}, name: "user_1"}`} {
		_, err := store.CreateIndexes(context.Background(), ns, func(*catalog.Collection) ([]*index.Definition, error) {
			d, err := indexes.Parse(bson.MustDoc(spec), nil)
			return []*index.Definition{d}, err
		})
		if err != nil {
			b.Fatal(err)
		}
	}
	fillBench(b, store, ns, random)
	b.ReportAllocs()
	b.ResetTimer()
	before := cpuMicros()
	if err := m.RunPass(context.Background()); err != nil {
		b.Fatal(err)
	}
	b.ReportMetric(float64(cpuMicros()-before)/float64(b.N), "µs-cpu/op")
}

// cpuMicros is what the process has used of the processors, compactions and all.
func cpuMicros() int64 {
	u := host.Used()
	return u.UserMicros + u.SystemMicros
}

func fillBench(b *testing.B, store *storage.Store, ns namespace.NS, random bool) {
	padding := string(make([]byte, 200))
	for from := 0; from < b.N; from += 1000 {
		err := store.Write(context.Background(), ns, storage.WriteOptions{Durability: kv.Buffered}, func(w *storage.Writer) error {
			for i := from; i < min(from+1000, b.N); i++ {
				age := int64(1_000_000_000 - i)
				if random {
					age = 10_000 + rand.Int64N(1_000_000_000)
				}
				doc := bson.Build().Int32("_id", int32(i)).Date("d", zero.UnixMilli()-age).Int32("user", rand.Int32()).String("text", padding).Doc()
				if _, err := w.Insert(doc); err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil {
			b.Fatal(err)
		}
	}
}
