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
	"github.com/ebbdb/ebb/internal/storage/indexddl"
	"github.com/ebbdb/ebb/internal/ttl"
)

// BenchmarkPass deletes documents of 300 bytes that expire at one moment, on disk, with an index on _id, the TTL index and
// one more. Time and processor time are per document that has expired; of vacuuming, they are in vacuum-µs-cpu/op.
func BenchmarkPass(b *testing.B) {
	for _, where := range []string{"in order", "at random"} {
		for _, batch := range []int64{1, 10, 100} {
			b.Run(fmt.Sprintf("one by one/batch=%d/%s", batch, where), func(b *testing.B) {
				benchmarkPass(b, benched{batch: batch, random: where == "at random", singly: true})
			})
		}
		b.Run("at once/all/"+where, func(b *testing.B) { benchmarkPass(b, benched{batch: 10, random: where == "at random"}) })
		for _, batch := range []int64{10, 30, 100} {
			b.Run(fmt.Sprintf("second index/batch=%d/%s", batch, where), func(b *testing.B) {
				benchmarkPass(b, benched{batch: batch, random: where == "at random", second: true})
			})
		}
		b.Run("at once/half/"+where, func(b *testing.B) { benchmarkPass(b, benched{batch: 10, random: where == "at random", half: true}) })
	}
}

// benched is one benchmark: of half the documents, if so, the deadline has not come.
type benched struct {
	batch                int64
	random, singly, half bool
	// second: what is due is so by another index than the one that orders.
	second bool
}

// watched is a Recorder that wants to see deletes.
type watched struct{ ttl.NoRecord }

func (watched) Wants(string) bool { return true }

func benchmarkPass(b *testing.B, x benched) {
	engine, err := pebblekv.Open(b.TempDir(), pebblekv.Options{})
	if err != nil {
		b.Fatal(err)
	}
	defer engine.Close()
	c := clock.NewFake(zero)
	registry := parameter.NewRegistry(nil)
	params := ttl.NewParameters(registry)
	if _, err := registry.Set("batchedDeletesTargetBatchDocs", bson.Int64(x.batch), parameter.Runtime); err != nil {
		b.Fatal(err)
	}
	m := ttl.New(ttl.Options{Clock: c, Params: params, Ops: operation.NewRegistry(c), Log: slog.New(slog.NewTextHandler(io.Discard, nil))})
	indexes := index.NewParser(match.NewParser())
	store, ddl, err := indexddl.Open(context.Background(), engine, storage.Options{Clock: c, Indexes: indexes, OnDDL: m.OnDDL, OnDeadline: m.OnDeadline, OnReleased: m.OnReleased})
	if err != nil {
		b.Fatal(err)
	}
	defer store.Close()
	var recorder ttl.Recorder = ttl.NoRecord{}
	if x.singly {
		recorder = watched{}
	}
	m.Connect(store, ddl.Sweeper, ttl.Open{}, recorder)
	ns := namespace.NS{DB: "db", Coll: "c"}
	specs := []string{`{key: {d: 1}, name: "d_1", expireAfterSeconds: 1}`, `{key: {user: 1}, name: "user_1"}`}
	if x.second {
		specs = append([]string{`{key: {later: 1}, name: "later_1", expireAfterSeconds: 1}`}, specs...)
	}
	for _, spec := range specs {
		_, err := ddl.CreateIndexes(context.Background(), ns, func(*catalog.Collection) ([]*index.Definition, error) {
			d, err := indexes.Parse(bson.MustDoc(spec), nil)
			return []*index.Definition{d}, err
		})
		if err != nil {
			b.Fatal(err)
		}
	}
	fillBench(b, store, ns, x)
	b.ReportAllocs()
	b.ResetTimer()
	before := cpuMicros()
	if err := m.RunPass(context.Background()); err != nil {
		b.Fatal(err)
	}
	after := cpuMicros()
	b.StopTimer()
	if err := m.RunMaintenance(context.Background()); err != nil {
		b.Fatal(err)
	}
	b.ReportMetric(float64(after-before)/float64(b.N), "µs-cpu/op")
	b.ReportMetric(float64(cpuMicros()-after)/float64(b.N), "vacuum-µs-cpu/op")
}

// cpuMicros is what the process has used of the processors, compactions and all.
func cpuMicros() int64 {
	u := host.Used()
	return u.UserMicros + u.SystemMicros
}

func fillBench(b *testing.B, store *storage.Store, ns namespace.NS, x benched) {
	padding, count := string(make([]byte, 200)), b.N
	if x.half {
		count *= 2
	}
	for from := 0; from < count; from += 1000 {
		err := store.Write(context.Background(), ns, storage.WriteOptions{Durability: kv.Buffered}, func(w *storage.Writer) error {
			for i := from; i < min(from+1000, count); i++ {
				age, later := int64(1_000_000_000-i), int64(i)
				if x.random {
					age, later = 10_000+rand.Int64N(1_000_000_000), rand.Int64N(1e9)
				}
				if x.half && i%2 == 0 {
					age = -age
				}
				doc := bson.Build().Int32("_id", int32(i)).Date("d", zero.UnixMilli()-age).Int32("user", rand.Int32()).Date("later", zero.UnixMilli()+later).String("text", padding).Doc()
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
