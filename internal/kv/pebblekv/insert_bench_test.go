//go:build unix

package pebblekv

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/ebbdb/ebb/internal/kv"
)

// BenchmarkInsert is what storage asks for one document: look whether its _id is there, claim it, write the entry and the
// record, count.
func BenchmarkInsert(b *testing.B) {
	const writers = 16
	e := filled(b)
	var next, syncs atomic.Int64
	sync := e.commits.group.sync
	e.commits.group.sync = func() error { syncs.Add(1); return sync() }
	next.Store(2 * benchKeys)
	for _, d := range []kv.Durability{kv.Synced, kv.Buffered} {
		b.Run([]string{"synced", "buffered"}[d], func(b *testing.B) {
			b.SetParallelism(writers / runtime.GOMAXPROCS(0))
			b.ReportAllocs()
			before := processorTime()
			syncs.Store(0)
			b.RunParallel(func(pb *testing.PB) {
				value := make([]byte, 300)
				for pb.Next() {
					if err := insertOne(e, int(next.Add(1)), value, d); err != nil {
						b.Error(err)
						return
					}
				}
			})
			b.ReportMetric(float64(processorTime()-before)/float64(b.N), "cpu-ns/op")
			b.ReportMetric(float64(b.N)/float64(syncs.Load()), "commits/sync")
		})
	}
}

// processorTime is what this process has taken of the processors, in nanoseconds: the figure to trust on a busy machine.
func processorTime() int64 {
	var used syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &used); err != nil {
		return 0
	}
	return used.Utime.Nano() + used.Stime.Nano()
}

// insertOne gives record n an _id that nothing else has, somewhere among the others.
func insertOne(e *Engine, n int, value []byte, d kv.Durability) error {
	t, err := e.Begin()
	if err != nil {
		return err
	}
	id := binary.BigEndian.AppendUint64(benchKey(2*rand.IntN(benchKeys)), uint64(n))
	if _, err := t.Probe(id); !errors.Is(err, kv.ErrNotFound) {
		t.Rollback()
		return fmt.Errorf("the _id of %d: %w", n, err)
	}
	t.Claim(id)
	t.Set(id, binary.BigEndian.AppendUint64(nil, uint64(n)))
	t.Set(benchKey(n), value)
	t.Add([]byte("count/documents"), 1)
	t.Add([]byte("count/bytes"), 300)
	return t.Commit(context.Background(), d)
}
