package storage

import (
	"context"
	"math"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/ebbdb/ebb/internal/bson"
	"github.com/ebbdb/ebb/internal/clock"
	"github.com/ebbdb/ebb/internal/kv/pebblekv"
	"github.com/ebbdb/ebb/internal/namespace"
)

// benchDocument is about 300 bytes.
func benchDocument(i int) bson.Doc {
	b := bson.Build().Int64("_id", int64(i)).Int32("a", int32(i*7919%1_000_003)).Date("d", epoch.UnixMilli()+int64(i))
	for _, name := range []string{"name", "city", "street", "mail", "note", "phone"} {
		b.String(name, "abcdefghijklmnopqrstuvwxyz0123")
	}
	return b.Doc()
}

func benchStore(b *testing.B, specs ...string) *fixture {
	return benchStoreIn(b, b.TempDir(), specs...)
}

func benchStoreIn(b *testing.B, dir string, specs ...string) *fixture {
	f := &fixture{clock: clock.NewFake(epoch), parser: indexParser()}
	f.openBench(b, dir)
	b.Cleanup(func() { _ = f.Close(); _ = f.Store.engine.Close() })
	if _, err := f.CreateIndexes(context.Background(), benchNS, f.parse(specs...)); err != nil {
		b.Fatal(err)
	}
	return f
}

func (f *fixture) openBench(b *testing.B, dir string) {
	engine, err := pebblekv.Open(dir, pebblekv.Options{})
	if err != nil {
		b.Fatal(err)
	}
	if err := f.openOn(engine, Options{Clock: f.clock, Indexes: f.parser}); err != nil {
		b.Fatal(err)
	}
}

var benchNS = namespace.NS{DB: "db", Coll: "bench"}

func benchInsert(b *testing.B, batch int, specs ...string) {
	f := benchStore(b, specs...)
	docs := make([]bson.Doc, b.N)
	for i := range docs {
		docs[i] = benchDocument(i)
	}
	b.ReportAllocs()
	b.ResetTimer()
	for i := 0; i < b.N; i += batch {
		err := f.Write(context.Background(), benchNS, creating, func(w *Writer) error {
			for _, d := range docs[i:min(i+batch, b.N)] {
				if _, err := w.Insert(d); err != nil {
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

func BenchmarkInsertOne(b *testing.B)  { benchInsert(b, 1) }
func BenchmarkInsertMany(b *testing.B) { benchInsert(b, 1000) }
func BenchmarkInsertManyDated(b *testing.B) {
	benchInsert(b, 1000, `{key: {d: 1}, name: "d", expireAfterSeconds: 1000000}`)
}
func BenchmarkInsertManyTouched(b *testing.B) {
	benchInsert(b, 1000, `{key: {_ts: 1}, name: "ts", expireAfterSeconds: 1000000}`)
}
func BenchmarkInsertManyIndexed(b *testing.B) {
	benchInsert(b, 1000, `{key: {a: 1}, name: "a"}`, `{key: {_ts: 1}, name: "ts", expireAfterSeconds: 100}`)
}

func benchFilled(b *testing.B, n int, specs ...string) *fixture {
	return benchFilledWith(b, n, benchDocument, specs...)
}

func benchFilledWith(b *testing.B, n int, document func(int) bson.Doc, specs ...string) *fixture {
	f := benchStore(b, specs...)
	const batch = 10_000
	for start := 0; start < n; start += batch {
		err := f.Write(context.Background(), benchNS, creating, func(w *Writer) error {
			for i := start; i < min(start+batch, n); i++ {
				if _, err := w.Insert(document(i)); err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil {
			b.Fatal(err)
		}
	}
	b.ReportAllocs()
	b.ResetTimer()
	return f
}

const benchDocuments = 50_000

func BenchmarkGetByID(b *testing.B) {
	f := benchFilled(b, benchDocuments)
	for range b.N {
		v, _ := f.View(context.Background())
		r, _ := v.Collection(benchNS)
		if _, there, err := r.GetByID(bson.Int64(int64(rand.IntN(benchDocuments)))); err != nil || !there {
			b.Fatal(there, err)
		}
		_ = v.Close()
	}
}

func benchScan(b *testing.B, specs ...string) {
	f := benchFilled(b, benchDocuments, specs...)
	v, _ := f.View(context.Background())
	defer v.Close()
	r, _ := v.Collection(benchNS)
	for n := 0; n < b.N; {
		c, err := r.Scan(RecordScan{})
		if err != nil {
			b.Fatal(err)
		}
		for ; n < b.N && c.Next(); n++ {
		}
		_ = c.Close()
	}
}

func BenchmarkScan(b *testing.B) { benchScan(b) }
func BenchmarkScanHiding(b *testing.B) {
	benchScan(b, `{key: {_ts: 1}, name: "ts", expireAfterSeconds: 100}`)
}

// BenchmarkCountEntries counts a million keys; ns/op is for each of them.
func BenchmarkCountEntries(b *testing.B) {
	f := benchFilledWith(b, 1_000_000, func(i int) bson.Doc { return bson.Build().Int32("_id", int32(i)).Int32("a", int32(i)).Doc() },
		`{key: {a: 1}, name: "a"}`)
	v, _ := f.View(context.Background())
	defer v.Close()
	r, _ := v.Collection(benchNS)
	for n := 0; n < b.N; {
		counted, err := r.CountEntries(r.Catalog().Index("a"), nil, nil, int64(b.N-n))
		if err != nil {
			b.Fatal(err)
		}
		n += int(counted)
	}
}

func BenchmarkUpdate(b *testing.B) {
	f := benchFilled(b, benchDocuments, `{key: {a: 1}, name: "a"}`)
	for i := range b.N {
		id := rand.IntN(benchDocuments)
		err := f.Write(context.Background(), benchNS, creating, func(w *Writer) error {
			rec, _, err := w.GetByID(bson.Int64(int64(id)))
			if err != nil {
				return err
			}
			_, _, err = w.Update(rec, bson.Build().Fields(benchDocument(id)).Int32("n", int32(i)).Doc())
			return err
		})
		if err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkExpire(b *testing.B) {
	f := benchFilled(b, b.N, `{key: {d: 1}, name: "d", expireAfterSeconds: 0}`)
	f.clock.Advance(1 << 50)
	b.ResetTimer()
	rule := f.current.Load().collections[1].rules.All()[0]
	f.Bounds().Few = math.MaxInt64 // one by one
	if n, err := f.deleteDue(context.Background(), f.find([]namespace.NS{benchNS})[0], &rule, f.Now(), besideWriters); err != nil || n != int64(b.N) {
		b.Fatal(n, err)
	}
}

// BenchmarkSweep deletes b.N documents at once whose dates are all the same, and then one in ten of those that are left behind.
func BenchmarkSweep(b *testing.B) {
	for _, live := range []struct {
		name  string
		every int // one document in so many lives on
	}{{"all", 0}, {"nine in ten", 10}, {"half", 2}} {
		b.Run(live.name, func(b *testing.B) {
			f := benchStore(b, `{key: {d: 1}, name: "d", expireAfterSeconds: 1}`, `{key: {a: 1}, name: "a"}`)
			f.benchDated(b, live.every)
			f.clock.Advance(time.Second)
			c := f.current.Load().collections[f.current.Load().catalog.Collection(benchNS).ID]
			b.ResetTimer()
			started := time.Now()
			done, ok, err := f.Sweep(context.Background(), c.ID, c.order.Rule, f.Now())
			if err != nil || !ok && int64(b.N) >= 2*f.Bounds().Few {
				b.Fatal(ok, err)
			}
			swept := time.Since(started)
			for more := true; more; {
				if _, more, err = f.Vacuum(context.Background(), c.ID, 4000); err != nil {
					b.Fatal(err)
				}
			}
			if n := float64(done.Documents); n > 0 {
				b.ReportMetric(float64(swept.Nanoseconds())/n, "sweep-ns/doc")
				b.ReportMetric(float64(time.Since(started).Nanoseconds())/n, "all-ns/doc")
			}
		})
	}
}

// BenchmarkSweepBesideTransaction deletes b.N documents at once but for a hundred that an open transaction has written.
func BenchmarkSweepBesideTransaction(b *testing.B) {
	f := benchStore(b, `{key: {d: 1}, name: "d", expireAfterSeconds: 1}`, `{key: {a: 1}, name: "a"}`)
	f.benchDated(b, 0)
	f.clock.Advance(time.Second)
	c := f.current.Load().collections[f.current.Load().catalog.Collection(benchNS).ID]
	txn, err := f.BeginTransaction(context.Background(), TransactionOptions{Now: f.Now(), LockTimeout: -1})
	if err != nil {
		b.Fatal(err)
	}
	defer txn.Rollback()
	err = txn.Write(context.Background(), benchNS, WriteOptions{}, func(w *Writer) error {
		for i := range min(100, b.N) {
			rec, _, err := w.GetByID(bson.Int64(int64(i * 7919 % 1_000_003)))
			if err == nil {
				_, _, err = w.Update(rec.Clone(), bson.Build().Fields(rec.Doc).Bool("written", true).Doc())
			}
			if err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		b.Fatal(err)
	}
	b.ResetTimer()
	done, ok, err := f.Sweep(context.Background(), c.ID, c.order.Rule, f.Now())
	if err != nil || !ok && int64(b.N) >= 100+2*f.Bounds().Few {
		b.Fatal(done, ok, err)
	}
}

// benchDated inserts documents that expire together, but for some that do not.
func (f *fixture) benchDated(b *testing.B, every int) {
	dates, order := make([]int64, b.N), make([]int, b.N)
	for i := range dates {
		dates[i], order[i] = epoch.UnixMilli(), i*7919%1_000_003
		if every > 0 && i%every == 0 {
			dates[i] += 1e9
		}
	}
	f.benchInsertDated(b, dates, order)
}

// benchInsertDated inserts a document for each date, with an _id and a value of a of its own.
func (f *fixture) benchInsertDated(b *testing.B, dates []int64, ids []int) {
	const batch = 1000
	for from := 0; from < len(dates); from += batch {
		err := f.Write(context.Background(), benchNS, creating, func(w *Writer) error {
			for i := from; i < min(from+batch, len(dates)); i++ {
				doc := bson.Build().Int64("_id", int64(ids[i])).Date("d", dates[i]).Int32("a", int32(ids[i]*104729%1_000_003)).
					String("s", strings.Repeat("x", 250)).Doc()
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

// BenchmarkArrange puts documents in order that were there before the TTL index.
func BenchmarkArrange(b *testing.B) {
	f := benchStore(b, `{key: {a: 1}, name: "a"}`)
	f.benchDated(b, 3)
	if _, err := f.CreateIndexes(context.Background(), benchNS, f.parse(`{key: {d: 1}, name: "d", expireAfterSeconds: 1}`)); err != nil {
		b.Fatal(err)
	}
	c := f.current.Load().catalog.Collection(benchNS).ID
	b.ResetTimer()
	for more := true; more; {
		var err error
		if _, more, err = f.Recluster(context.Background(), c, 1000); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkUnclustered counts records of some 300 bytes that lie elsewhere than in their order: b.N, or what is left of b.N when
// half were moved.
func BenchmarkUnclustered(b *testing.B) {
	for name, half := range map[string]bool{"none moved": false, "half moved": true} {
		b.Run(name, func(b *testing.B) {
			dir, ctx := b.TempDir(), context.Background()
			f := benchStoreIn(b, dir, `{key: {a: 1}, name: "a"}`)
			f.benchDated(b, 3)
			if _, err := f.CreateIndexes(ctx, benchNS, f.parse(`{key: {d: 1}, name: "d", expireAfterSeconds: 1}`)); err != nil {
				b.Fatal(err)
			}
			f.reopenBench(b, dir)
			c := f.current.Load().catalog.Collection(benchNS).ID
			if half {
				for moved := 0; moved < b.N/2; moved += 1000 {
					if _, _, err := f.Recluster(ctx, c, 1000); err != nil {
						b.Fatal(err)
					}
				}
			}
			b.ResetTimer()
			n, err := f.Unclustered(ctx, c, math.MaxInt64)
			if err != nil {
				b.Fatal(err)
			}
			b.ReportMetric(float64(n), "counted")
		})
	}
}
