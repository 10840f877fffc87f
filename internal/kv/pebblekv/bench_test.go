package pebblekv

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime"
	"sync/atomic"
	"testing"

	"github.com/ebbdb/ebb/internal/kv"
)

const benchKeys = 300_000

func benchKey(n int) []byte { return binary.BigEndian.AppendUint64([]byte("record/"), uint64(n)) }

// filled is a store on disk of benchKeys records with even numbers, all in tables.
func filled(b *testing.B) *Engine {
	b.Helper()
	e, err := Open(b.TempDir(), Options{})
	if err != nil {
		b.Fatal(err)
	}
	value := make([]byte, 300)
	rng := rand.New(rand.NewPCG(1, 1))
	for start := 0; start < benchKeys; start += 10_000 {
		txn, err := e.Begin()
		if err != nil {
			b.Fatal(err)
		}
		for i := range 10_000 {
			for j := range value[:150] { // half of it compresses
				value[j] = byte(rng.Uint32())
			}
			txn.Set(benchKey(2*(start+i)), value)
		}
		if err := txn.Commit(context.Background(), kv.Buffered); err != nil {
			b.Fatal(err)
		}
	}
	if err := e.db.Flush(); err != nil {
		b.Fatal(err)
	}
	if err := e.db.Compact(context.Background(), []byte("a"), []byte("z"), true); err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { e.Close() })
	return e
}

func BenchmarkRead(b *testing.B) {
	e := filled(b)
	s, err := e.Snapshot()
	if err != nil {
		b.Fatal(err)
	}
	defer s.Close()
	for _, odd := range []int{0, 1} {
		b.Run([]string{"get present", "get absent"}[odd], func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if _, err := s.Get(benchKey(2*rand.IntN(benchKeys) + odd)); err != nil && !errors.Is(err, kv.ErrNotFound) {
					b.Fatal(err)
				}
			}
		})
	}
	b.Run("probe absent", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			if _, err := s.Probe(benchKey(2*rand.IntN(benchKeys) + 1)); !errors.Is(err, kv.ErrNotFound) {
				b.Fatal(err)
			}
		}
	})
	b.Run("get hot", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			if _, err := s.Get(benchKey(2 * rand.IntN(benchKeys/10))); err != nil {
				b.Fatal(err)
			}
		}
	})
	for _, n := range []int{10, 100, 1000} {
		b.Run(fmt.Sprint("get many ", n), func(b *testing.B) {
			keys := make([][]byte, n)
			for b.Loop() {
				for i := range keys {
					keys[i] = benchKey(2 * rand.IntN(benchKeys))
				}
				if _, err := s.GetMany(keys); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*n), "ns/key")
		})
	}
	b.Run("get many neighbours", func(b *testing.B) {
		keys := make([][]byte, 100)
		for b.Loop() {
			first := rand.IntN(benchKeys - len(keys))
			for i := range keys {
				keys[i] = benchKey(2 * (first + i))
			}
			if _, err := s.GetMany(keys); err != nil {
				b.Fatal(err)
			}
		}
		b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*len(keys)), "ns/key")
	})
	b.Run("scan", func(b *testing.B) {
		it, err := s.NewIter(kv.IterOptions{})
		if err != nil {
			b.Fatal(err)
		}
		defer it.Close()
		for b.Loop() {
			if !it.Next() {
				it.First()
			}
			if _, err := it.Value(); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("begin and rollback", func(b *testing.B) {
		for b.Loop() {
			t, err := e.Begin()
			if err != nil {
				b.Fatal(err)
			}
			t.Rollback()
		}
	})
	b.Run("new iterator and seek", func(b *testing.B) {
		for b.Loop() {
			key := benchKey(2 * rand.IntN(benchKeys))
			it, err := s.NewIter(kv.IterOptions{Lower: key})
			if err != nil {
				b.Fatal(err)
			}
			it.First()
			it.Close()
		}
	})
}

func BenchmarkCommit(b *testing.B) {
	for _, d := range []kv.Durability{kv.Synced, kv.Buffered} {
		for _, writers := range []int{1, 8, 64} {
			b.Run(fmt.Sprint([]string{"synced", "buffered"}[d], " by ", writers), func(b *testing.B) {
				e, err := Open(b.TempDir(), Options{})
				if err != nil {
					b.Fatal(err)
				}
				defer e.Close()
				var n atomic.Int64
				b.SetParallelism(max(1, writers/runtime.GOMAXPROCS(0)))
				b.RunParallel(func(pb *testing.PB) {
					value := make([]byte, 300)
					for pb.Next() {
						t, err := e.Begin()
						if err != nil {
							b.Error(err)
							return
						}
						key := benchKey(int(n.Add(1)))
						if _, err := t.Get(key); !errors.Is(err, kv.ErrNotFound) {
							b.Error(err)
						}
						t.Claim(key)
						t.Set(key, value)
						t.Set(append([]byte("index/"), key...), nil)
						t.Add([]byte("count"), 1)
						if err := t.Commit(context.Background(), d); err != nil {
							b.Error(err)
						}
					}
				})
			})
		}
	}
}

func BenchmarkInsertMany(b *testing.B) {
	const perTxn = 1000
	e, err := Open(b.TempDir(), Options{})
	if err != nil {
		b.Fatal(err)
	}
	defer e.Close()
	value := make([]byte, 300)
	n := 0
	b.ReportAllocs()
	for b.Loop() {
		t, err := e.Begin()
		if err != nil {
			b.Fatal(err)
		}
		for range perTxn {
			n++
			key := benchKey(n)
			t.Claim(key)
			t.Set(key, value)
			t.Set(append([]byte("index/"), key...), nil)
		}
		t.Add([]byte("count"), perTxn)
		if err := t.Commit(context.Background(), kv.Synced); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*perTxn), "ns/record")
}
