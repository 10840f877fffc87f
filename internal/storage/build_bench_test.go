package storage

import (
	"context"
	"math/rand/v2"
	"runtime"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/ebbdb/ebb/internal/bson"
	"github.com/ebbdb/ebb/internal/catalog"
	"github.com/ebbdb/ebb/internal/index"
)

// builtDocuments is how many documents the benchmarks of index builds build over.
const builtDocuments = 1_000_000

// cpu is the processor time that the process has used.
func cpu() time.Duration {
	var u syscall.Rusage
	_ = syscall.Getrusage(syscall.RUSAGE_SELF, &u)
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// BenchmarkIndexBuild builds an index on an int field: documents a second of processor time, and the highest heap.
func BenchmarkIndexBuild(b *testing.B) {
	f := benchFilled(b, builtDocuments)
	runtime.GC()
	used, peak := cpu(), peakHeap(b)
	b.ResetTimer()
	for range b.N {
		f.buildAndDrop(b)
	}
	b.StopTimer()
	b.ReportMetric(float64(b.N*builtDocuments)/(cpu()-used).Seconds(), "docs/cpu-s")
	b.ReportMetric(float64(b.N*builtDocuments)/b.Elapsed().Seconds(), "docs/s")
	b.ReportMetric(float64(peak())/(1<<20), "heap-MB")
}

// peakHeap watches the heap until it is asked how far it grew beyond what it was.
func peakHeap(b *testing.B) (grown func() uint64) {
	var highest atomic.Uint64
	heap := func() uint64 {
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return m.HeapInuse
	}
	start := heap()
	stop := make(chan struct{})
	go func() {
		for {
			select {
			case <-stop:
				return
			case <-time.After(50 * time.Millisecond):
				highest.Store(max(highest.Load(), heap()))
			}
		}
	}()
	b.Cleanup(func() { close(stop) })
	return func() uint64 { return max(highest.Load(), start) - start }
}

func (f *fixture) buildAndDrop(b *testing.B) {
	if _, err := f.CreateIndexes(context.Background(), benchNS, f.parse(`{key: {a: 1}, name: "a"}`)); err != nil {
		b.Fatal(err)
	}
	_, err := f.DropIndexes(context.Background(), benchNS, func(c *catalog.Collection) ([]*index.Definition, error) {
		return []*index.Definition{c.Index("a")}, nil
	})
	if err != nil {
		b.Fatal(err)
	}
}

// BenchmarkWritersBesideBuild tells which part of their throughput writers keep while an index is built, side by side: each
// build is followed by as long a time without one. pause-ms is the longest that one write took meanwhile.
func BenchmarkWritersBesideBuild(b *testing.B) {
	f := benchFilled(b, builtDocuments)
	var writes, longest atomic.Int64
	ctx, stop := context.WithCancel(context.Background())
	var work sync.WaitGroup
	for range 8 {
		work.Go(func() {
			for ctx.Err() == nil {
				begun := time.Now()
				benchWrite(b, f)
				longest.Store(max(longest.Load(), int64(time.Since(begun))))
				writes.Add(1)
			}
		})
	}
	var beside, alone int64
	b.ResetTimer()
	for range b.N {
		before, begun := writes.Load(), time.Now()
		f.buildAndDrop(b)
		took, between := time.Since(begun), writes.Load()
		time.Sleep(took)
		beside += between - before
		alone += writes.Load() - between
	}
	b.StopTimer()
	stop()
	work.Wait()
	b.ReportMetric(100*float64(beside)/float64(alone), "%-kept")
	b.ReportMetric(float64(longest.Load())/1e6, "pause-ms")
}

// benchWrite changes a document, also in the field that is indexed, and waits for the disk.
func benchWrite(b *testing.B, f *fixture) {
	id := rand.IntN(builtDocuments)
	err := f.Write(context.Background(), benchNS, WriteOptions{}, func(w *Writer) error {
		rec, _, err := w.GetByID(bson.Int64(int64(id)))
		if err != nil {
			return err
		}
		doc := bson.Build()
		for it := rec.Doc.Iter(); it.Next(); {
			if it.Key() == "a" {
				doc.Int32("a", rand.Int32())
				continue
			}
			doc.Value(it.Key(), it.Value())
		}
		_, _, err = w.Update(rec, doc.Doc())
		return err
	})
	if err != nil {
		b.Error(err)
	}
}
