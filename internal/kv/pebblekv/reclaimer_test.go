package pebblekv

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/ebbdb/ebb/internal/clock"
	"github.com/ebbdb/ebb/internal/kv"
	"github.com/ebbdb/ebb/internal/kv/deleted"
	"github.com/ebbdb/ebb/internal/kv/rowcache"
)

const (
	reclaimKept    = 100
	reclaimDeleted = 2 * excisedBytes >> 10 // KiB
)

// openDeleted is a store without compactions of its own, most of which was deleted and lies in level 6 or in level 0.
func openDeleted(t *testing.T, low bool) (*committer, Options, kv.Range) {
	t.Helper()
	o := Options{FS: vfs.NewMem()}.withDefaults()
	db, err := pebble.Open("db", &pebble.Options{FS: o.FS, DisableAutomaticCompactions: true, FormatMajorVersion: formatVersion})
	must(err)
	c := newCommitter(db, o.FS, "db", &failure{}, &openTxns{}, rowcache.New(1<<20))
	t.Cleanup(func() {
		c.group.stop()
		must(db.Close())
	})
	r := kv.Range{Start: benchKey(reclaimKept), End: benchKey(reclaimKept + reclaimDeleted)}
	fillTables(db, 0, reclaimKept+reclaimDeleted)
	if low {
		must(db.Compact(context.Background(), benchKey(0), r.End, false))
	}
	must(db.DeleteRange(r.Start, r.End, pebble.NoSync))
	must(db.Flush())
	return c, o, r
}

// fillTables writes keys from first to end with values of 1 KiB that do not compress.
func fillTables(db *pebble.DB, first, end int) {
	random, value := rand.NewChaCha8([32]byte{}), make([]byte, 1<<10)
	for i := first; i < end; i++ {
		_, _ = random.Read(value)
		must(db.Set(benchKey(i), value, pebble.NoSync))
	}
	must(db.Flush())
}

// What Pebble itself leaves of a deleted range goes some time after the deletion, and what was not deleted stays.
func TestReclaim(t *testing.T) {
	for name, low := range map[string]bool{"level 6": true, "level 0": false} {
		t.Run(name, func(t *testing.T) {
			c, o, r := openDeleted(t, low)
			fake := clock.NewFake(time.Unix(0, 0))
			o.Clock = fake
			reclaim := startReclaimer(c, "db", o, false)
			defer reclaim.stop()
			reclaim.deleted(0, r)
			for c.db.Metrics().Table.Local.LiveSize > tolerableGarbage+2*reclaimKept<<10 {
				time.Sleep(time.Millisecond)
				fake.Advance(reclaimInterval)
			}
			for i := range reclaimKept + 1 {
				_, closer, err := c.db.Get(benchKey(i))
				if (err == nil) != (i < reclaimKept) {
					t.Fatalf("get %d: %v", i, err)
				}
				if err == nil {
					must(closer.Close())
				}
			}
		})
	}
}

// mergesNothing is a disk without room for what a compaction writes.
type mergesNothing struct {
	vfs.FS
	full *atomic.Bool
}

func (d mergesNothing) Create(name string, category vfs.DiskWriteCategory) (vfs.File, error) {
	if d.full.Load() && tableKindOf(name, category) == mergedTable {
		return nil, syscall.ENOSPC
	}
	return d.FS.Create(name, category)
}

// What is deleted among little that lives goes on a disk that has no room for a compaction, also when it was found; and where only a compaction helps,
// it goes when there is room.
func TestReclaimWithoutRoom(t *testing.T) {
	for _, scattered := range []bool{false, true} {
		t.Run(fmt.Sprint("scattered ", scattered), func(t *testing.T) {
			full := new(atomic.Bool)
			o := Options{FS: mergesNothing{vfs.NewMem(), full}}.withDefaults()
			db, err := pebble.Open("db", &pebble.Options{FS: o.FS, DisableAutomaticCompactions: true, FormatMajorVersion: formatVersion})
			must(err)
			c := newCommitter(db, o.FS, "db", &failure{}, &openTxns{}, rowcache.New(1<<20))
			defer func() {
				c.group.stop()
				must(db.Close())
			}()
			const n = 2 * reclaimDeleted
			fillTables(db, 0, n)
			lives := func(i int) bool { return i == 0 || i == n/2 || i == n-1 || scattered && i%1000 == 0 } // each with less than excisedBytes behind it
			for first, i := 0, 1; i < n; i++ {
				if lives(i) {
					must(db.DeleteRange(benchKey(first+1), benchKey(i), pebble.NoSync))
					first = i
				}
			}
			must(db.Set(benchKey(0), make([]byte, 1<<10), pebble.NoSync)) // so the table with the deletions has what lives
			must(db.Flush())
			full.Store(true)
			r := newReclaimer(c, "db", o, crowdingGarbage)
			must(r.findDeleted())
			look := func() int64 {
				for isAtWork(db.Metrics()) {
					time.Sleep(time.Millisecond)
				}
				r.look(t.Context(), db.Metrics().WAL.BytesIn)
				return r.stored(deleted.Range{Range: kv.Range{Start: benchKey(0), End: benchKey(n)}})
			}
			left := look()
			if goes := left < tolerableGarbage; goes == scattered {
				t.Errorf("%d bytes are left on the full disk", left)
			}
			full.Store(false)
			if left = look(); left >= tolerableGarbage {
				t.Errorf("%d bytes are left when there is room", left)
			}
			for i := range n {
				_, closer, err := db.Get(benchKey(i))
				if (err == nil) != lives(i) {
					t.Fatalf("get %d: %v", i, err)
				}
				if err == nil {
					must(closer.Close())
				}
			}
		})
	}
}

// What takes much goes soon after the deletion, unless others write, or somebody reads as of before.
func TestReclaimEarly(t *testing.T) {
	for _, name := range []string{"quiet", "busy", "read"} {
		t.Run(name, func(t *testing.T) {
			busy, read := name == "busy", name == "read"
			c, o, r := openDeleted(t, false)
			reclaim := newReclaimer(c, "db", o, crowdingGarbage)
			reclaim.deleted(0, r)
			for isAtWork(c.db.Metrics()) {
				time.Sleep(time.Millisecond)
			}
			written := c.db.Metrics().WAL.BytesIn
			if busy {
				written = 0
			}
			if read {
				s := c.db.NewSnapshot()
				defer func() { must(s.Close()) }()
				must(c.deleteNothing([]byte("later")))
			}
			flushes := c.db.Metrics().Flush.Count
			reclaim.lookEarly(t.Context(), written)
			if goes := reclaim.stored(deleted.Range{Range: r}) < tolerableGarbage; goes != (!busy && !read) {
				t.Errorf("gone: %v", goes)
			}
			if n := c.db.Metrics().Flush.Count - flushes; (n == 0) != (busy || read) {
				t.Errorf("flushed %d times", n)
			}
		})
	}
}

// The reclaimer looks early, and again in its time.
func TestReclaimLooksTwice(t *testing.T) {
	c, o, r := openDeleted(t, true)
	fake := clock.NewFake(time.Unix(0, 0))
	o.Clock = fake
	reclaim := startReclaimer(c, "db", o, false)
	defer reclaim.stop()
	for isAtWork(c.db.Metrics()) {
		time.Sleep(time.Millisecond)
	}
	reclaim.deleted(0, r)
	for _, pause := range []time.Duration{exciseDelay, reclaimInterval - exciseDelay} {
		for fake.Waiting() == 0 {
			time.Sleep(time.Millisecond)
		}
		fake.Advance(pause - 1)
		if fake.Waiting() == 0 {
			t.Fatalf("it looked less than %v after it began to wait", pause)
		}
		fake.Advance(1)
	}
	waits := func() bool {
		reclaim.mu.Lock()
		defer reclaim.mu.Unlock()
		return len(reclaim.mu.ranges) > 0
	}
	for waits() { // while the store is at work a look has no effect but another
		time.Sleep(time.Millisecond)
		fake.Advance(reclaimInterval)
	}
}

// As long as others write, what is deleted waits for their compactions, until it is much and much of the store.
func TestReclaimBesideWriters(t *testing.T) {
	for name, c := range map[string]struct {
		limit int64
		more  int // KiB that are not deleted
		goes  bool
	}{
		"little":                 {limit: crowdingGarbage},
		"much":                   {limit: 3 * reclaimDeleted / 4 << 10, goes: true},
		"little of what is more": {limit: 3 * reclaimDeleted / 4 << 10, more: crowdingShare * reclaimDeleted},
	} {
		t.Run(name, func(t *testing.T) {
			store, o, gone := openDeleted(t, false)
			fillTables(store.db, reclaimKept+reclaimDeleted, reclaimKept+reclaimDeleted+c.more)
			r := newReclaimer(store, "db", o, c.limit)
			r.deleted(0, gone)
			for isAtWork(store.db.Metrics()) {
				time.Sleep(time.Millisecond)
			}
			r.look(t.Context(), 0) // all that was written counts as written since the deletion
			if goes := r.stored(deleted.Range{Range: gone}) < tolerableGarbage; goes != c.goes {
				t.Errorf("gone: %v", goes)
			}
			if waits := len(r.take()) > 0; waits == c.goes {
				t.Errorf("it waits to be looked at again: %v", waits)
			}
		})
	}
}
