package ttl_test

import (
	"context"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/ebbdb/ebb/internal/kv"
	"github.com/ebbdb/ebb/internal/namespace"
	"github.com/ebbdb/ebb/internal/storage"
)

// While a writer does not end, deleting at once is tried again a few times, and then it goes one by one, beside the writer.
// A second later it is tried again.
func TestWritersThatDoNotEnd(t *testing.T) {
	w := newWorld(t)
	w.line(`index c {key: {d: 1}, name: "d_1", expireAfterSeconds: 10}`)
	w.line(`fill c 300 {d: @-1h}`)
	wrote := w.holdWriter()
	passed := make(chan error)
	go func() { passed <- w.monitor.RunPass(context.Background()) }()
	for range 5 { // tries, each with a timer of its own; the pauses between them turn the clock themselves
		for w.clock.Waiting() == 0 {
			runtime.Gosched()
		}
		w.clock.Advance(20 * time.Millisecond)
	}
	if err := <-passed; err != nil {
		t.Fatal(err)
	}
	wrote()
	w.line("metrics ebb.sweeps")
	w.line("advance 1s")
	w.line("fill c 300 {d: @-1h}")
	w.line("pass")
	want := "rest 10ms\nrest 20ms\nrest 40ms\nrest 80ms\ndb.c d_1: deleted 300 of 300\nmetrics: ebb.sweeps NumberLong(0)\n" +
		"db.c d_1: deleted 300 of 300, 300 at once\n"
	if got := w.out.String(); got != want {
		t.Errorf("%s\nnot\n%s", strings.TrimSpace(got), want)
	}
}

// holdWriter begins a write into c that ends when it is told to.
func (w *world) holdWriter() (end func()) {
	begun, goOn, done := make(chan struct{}), make(chan struct{}), make(chan error)
	go func() {
		done <- w.store.Write(context.Background(), namespace.NS{DB: "db", Coll: "c"}, storage.WriteOptions{Durability: kv.Buffered}, func(*storage.Writer) error {
			close(begun)
			<-goOn
			return nil
		})
	}()
	<-begun
	return func() {
		close(goOn)
		if err := <-done; err != nil {
			w.t.Error(err)
		}
	}
}

// TestStopAmidUpkeep: what is shown of the maintenance ends with the monitor, in a slice or between two.
func TestStopAmidUpkeep(t *testing.T) {
	for _, resting := range []bool{false, true} {
		w := newWorld(t)
		w.line(`fill c 1000 {d: @-1h}`)
		w.line(`index c {key: {d: 1}, name: "d_1", expireAfterSeconds: 7200}`)
		slices, stopped := 0, make(chan struct{})
		stop := func(ctx context.Context) error {
			w.line("running")
			go func() {
				w.monitor.Stop()
				close(stopped)
			}()
			<-ctx.Done()
			return context.Cause(ctx)
		}
		w.atSlice = func(ctx context.Context) {
			if slices++; slices == 3 && !resting {
				_ = stop(ctx)
			}
		}
		w.atRest = func(ctx context.Context) error {
			if slices == 2 && resting {
				return stop(ctx)
			}
			return nil
		}
		if resting {
			w.line("busy 4")
			w.line("slow 200ms")
		}
		w.monitor.Start()
		<-stopped
		w.line("running")
		if got, want := w.out.String(), "running TTLMonitor none db.c: TTL: putting records in order, 200 of 1000\n"; got != want {
			t.Errorf("resting %v: %s\nnot\n%s", resting, strings.TrimSpace(got), want)
		}
	}
}
