package pebblekv

import (
	"context"
	"log/slog"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/ebbdb/ebb/internal/clock"
	"github.com/ebbdb/ebb/internal/kv/overlay"
)

// fillReclaimed is a store of so many KiB that were kept and, behind them, deleted. Pebble's own compactions are off, so that
// it leaves everything.
func fillReclaimed(t *testing.T, kept, deleted int) (*pebble.DB, overlay.Range) {
	db, err := pebble.Open("db", &pebble.Options{FS: vfs.NewMem(), DisableAutomaticCompactions: true, FormatMajorVersion: formatVersion})
	if err != nil {
		t.Fatal(err)
	}
	random := rand.NewChaCha8([32]byte{})
	value := make([]byte, 1<<10)
	for i := range kept + deleted {
		_, _ = random.Read(value) // it does not compress
		must(db.Set(benchKey(i), value, pebble.NoSync))
	}
	must(db.Compact(context.Background(), benchKey(0), benchKey(kept+deleted), false))
	r := overlay.Range{Start: benchKey(kept), End: benchKey(kept + deleted)}
	must(db.DeleteRange(r.Start, r.End, pebble.NoSync))
	must(db.Flush())
	for db.Metrics().Table.Garbage.RangeDeletionsBytesEstimate < tolerableGarbage {
		time.Sleep(time.Millisecond) // Pebble counts what was deleted in its own time
	}
	return db, r
}

// What is little beside what is kept waits for other writes.
func TestReclaimLittle(t *testing.T) {
	const deleted = 2 * tolerableGarbage >> 10
	db, r := fillReclaimed(t, 2*tolerableShare*deleted, deleted)
	defer db.Close()
	before := db.Metrics()
	fake := clock.NewFake(time.Unix(0, 0))
	reclaim := startReclaimer(db, fake, slog.New(slog.DiscardHandler))
	reclaim.deleted(0, r)
	for looked := false; !looked; {
		fake.Advance(reclaimInterval)
		reclaim.mu.Lock()
		looked = len(reclaim.mu.ranges) == 0
		reclaim.mu.Unlock()
	}
	reclaim.stop()
	if after := db.Metrics(); after.Compact.Count != before.Compact.Count {
		t.Errorf("%d compactions for %d bytes of %d", after.Compact.Count-before.Compact.Count, deleted<<10, after.Table.Local.LiveSize)
	}
}

// What Pebble itself leaves of a deleted range goes some time after the deletion, and what was not deleted stays.
func TestReclaim(t *testing.T) {
	const kept, deleted = 100, 4 * tolerableGarbage >> 10
	db, r := fillReclaimed(t, kept, deleted)
	defer db.Close()
	fake := clock.NewFake(time.Unix(0, 0))
	reclaim := startReclaimer(db, fake, slog.New(slog.DiscardHandler))
	defer reclaim.stop()
	reclaim.deleted(0, r)
	for db.Metrics().Table.Local.LiveSize > tolerableGarbage/2 {
		fake.Advance(reclaimInterval)
	}
	for i := range kept + 1 {
		_, closer, err := db.Get(benchKey(i))
		if (err == nil) != (i < kept) {
			t.Fatalf("get %d: %v", i, err)
		}
		if err == nil {
			must(closer.Close())
		}
	}
}
