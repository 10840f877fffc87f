package sweeper_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"github.com/tikv/client-go/v2/tikv"
	"github.com/tikv/client-go/v2/tikvrpc"

	"github.com/ebbdb/ebb/internal/bson"
	"github.com/ebbdb/ebb/internal/clock"
	"github.com/ebbdb/ebb/internal/index"
	"github.com/ebbdb/ebb/internal/kv"
	"github.com/ebbdb/ebb/internal/kv/tikvkv"
	"github.com/ebbdb/ebb/internal/kv/tikvkv/tikvtest"
	"github.com/ebbdb/ebb/internal/match"
	"github.com/ebbdb/ebb/internal/mongoerr"
	"github.com/ebbdb/ebb/internal/storage"
	"github.com/ebbdb/ebb/internal/storage/sweeper"
)

// heldBack is the way to a cluster on which commits may be held back, by the clock of the engine.
type heldBack struct {
	tikv.Client
	held  atomic.Bool
	clock *clock.Fake
}

func (h *heldBack) SendRequest(ctx context.Context, addr string, req *tikvrpc.Request, timeout time.Duration) (*tikvrpc.Response, error) {
	if req.Type == tikvrpc.CmdPrewrite && h.held.Load() {
		<-ctx.Done()
		return nil, ctx.Err()
	}
	return h.Client.SendRequest(ctx, addr, req, timeout)
}

// leave runs f, whose commit is held back until nobody waits for it any more. release lets it arrive, and returns when it is visible.
func (h *heldBack) leave(t *testing.T, engine kv.Engine, f func() error) (release func()) {
	t.Helper()
	h.until(t, func() bool { return engine.Stats().DeletedRanges == 0 }) // whose keys are removed by commits, too
	before, _ := engine.Last()
	h.held.Store(true)
	done := make(chan error, 1)
	go func() { done <- f() }()
	var err error
	h.until(t, func() bool {
		select {
		case err = <-done:
			return true
		default:
			return false
		}
	})
	if !errors.Is(err, kv.ErrUndetermined) {
		t.Fatalf("of a commit that is held back its writer is told %v", err)
	}
	return func() {
		h.held.Store(false)
		h.until(t, func() bool {
			number, _ := engine.Last()
			return number > before
		})
	}
}

// until turns the engine's clock.
func (h *heldBack) until(t *testing.T, done func() bool) {
	t.Helper()
	for !done() {
		h.clock.Advance(20 * time.Millisecond)
		if err := clock.Wait(t.Context(), clock.Wall(), time.Millisecond/4); err != nil {
			t.Fatal(err)
		}
	}
}

// TestSweepBesideStalledCommit: who is told that nobody knows what becomes of its commit has let go of its locks. A sweep that begins then, before the
// commit is visible, knows nothing of it. It is in conflict, whatever the commit was.
func TestSweepBesideStalledCommit(t *testing.T) {
	insert := func(w *world) func() error {
		return func() error {
			return w.store.Write(ctx, tested, storage.WriteOptions{}, func(wr *storage.Writer) error {
				_, err := wr.Insert(bson.Build().Int32("_id", 100).Date("d", start.UnixMilli()+1).Doc())
				return err
			})
		}
	}
	sweep := func(w *world) func() error {
		return func() error {
			c := w.collection()
			_, _, err := w.Sweep(ctx, c.ID, c.ExpiryOrder().Rule, w.store.Now())
			return err
		}
	}
	vacuum := func(w *world) func() error {
		return func() error {
			_, _, err := w.Vacuum(ctx, w.collection().ID, 1000)
			return err
		}
	}
	for name, test := range map[string]struct {
		leave func(*world) func() error
		stays int64
	}{"insert": {insert, 21}, "sweep": {sweep, 20}, "vacuum": {vacuum, 20}} {
		t.Run(name, func(t *testing.T) {
			cluster := tikvtest.New(t)
			way := &heldBack{Client: cluster.Client, clock: clock.NewFake(start)}
			engine := cluster.OpenOver(t, way, tikvkv.Options{Clock: way.clock})
			w := &world{T: t, engine: engine, clock: clock.NewFake(start), parser: index.NewParser(match.NewParser())}
			w.open(engine)
			t.Cleanup(func() {
				if err := errors.Join(w.store.Close(), engine.Close()); err != nil {
					t.Error(err)
				}
			})
			w.index(byDate, plain)
			w.insert(0, 20, -time.Hour)
			w.insert(20, 20, 0)
			w.insert(40, 20, time.Hour)
			if more, err := w.CountOrder(ctx, w.collection().ID, 1000); more || err != nil {
				t.Fatal(more, err)
			}
			if name == "vacuum" {
				w.sweep()
			}
			w.clock.Advance(time.Minute)
			release := way.leave(t, engine, test.leave(w))

			c := w.collection()
			unlock, err := c.LockToSweep(ctx)
			w.must(err)
			txn, wr, err := c.Begin(ctx, w.store.Now())
			w.must(err)
			if _, ok, err := wr.Sweep(w.Limits); !ok || err != nil {
				t.Fatal("it is not swept", err)
			}
			release()
			if err := txn.Commit(ctx, kv.Buffered); err == nil || mongoerr.From(err).Code != mongoerr.WriteConflict {
				t.Errorf("the sweep that has begun before is told %v", err)
			}
			unlock()

			_, err = w.DeleteDue(ctx, c, c.ExpiryOrder().Rule, w.store.Now(), sweeper.BesideWriters)
			w.must(err)
			for more, tries := true, 0; more; tries++ {
				if _, more, err = w.Vacuum(ctx, c.ID, 1000); err != nil || tries == 100 {
					t.Fatalf("dead entries are removed without an end, %v", err)
				}
			}
			w.wantStored(test.stays, 0)
		})
	}
}
