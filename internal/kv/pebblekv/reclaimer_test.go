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

// What Pebble itself leaves of a deleted range goes some time after the deletion, and what was not deleted stays. Pebble's
// own compactions are off, so that it leaves everything.
func TestReclaim(t *testing.T) {
	db, err := pebble.Open("db", &pebble.Options{FS: vfs.NewMem(), DisableAutomaticCompactions: true, FormatMajorVersion: formatVersion})
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	const kept, deleted = 100, 4 * tolerableGarbage >> 10
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
