package sweeper_test

import (
	"errors"
	"testing"
	"time"

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
			way := &tikvtest.HeldBack{Client: cluster.Client, Clock: clock.NewFake(start)}
			engine := cluster.OpenOver(t, way, tikvkv.Options{Clock: way.Clock})
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
			release := way.Leave(t, engine, test.leave(w))

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
