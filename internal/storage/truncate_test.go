package storage

import (
	"context"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/ebbdb/ebb/internal/bson"
	"github.com/ebbdb/ebb/internal/catalog"
	"github.com/ebbdb/ebb/internal/storage/oplog"
)

// truncateAll truncates the oplog as far as it may be, and looks whether it counts what it has.
func (f *fixture) truncateAll(keep oplog.Timestamp) (entries int64) {
	f.t.Helper()
	for more := true; more; {
		n, again, err := f.Truncate(context.Background(), keep)
		f.must(err)
		entries, more = entries+n, again
	}
	f.log() // which compares
	return entries
}

func (f *fixture) oplogBytes() (bytes int64) {
	f.t.Helper()
	f.read(catalog.OplogNS, func(r *Reader) error {
		var sum int64
		f.must(r.each(func(rec Record) error { sum += int64(len(rec.Doc)); return nil }))
		_, stored, err := r.storedCounts()
		if stored != sum {
			f.t.Errorf("the oplog counts %d bytes and has %d", stored, sum)
		}
		bytes = stored
		return err
	})
	return bytes
}

// TestTruncateOplog: an oplog that has grown over its size loses its oldest entries, and none that is young or the last.
func TestTruncateOplog(t *testing.T) {
	const size, all = 50_000, oplog.Timestamp(math.MaxUint64)
	f := newFixture(t)
	f.options.Oplog = func() int64 { return 1 }
	f.reopen()
	f.must(f.CreateOplog(context.Background(), size))
	made := 0
	fill := func(n int) {
		t.Helper()
		for range n {
			made++
			f.must(f.Write(context.Background(), historyNS, creating, func(w *Writer) error {
				_, err := w.Insert(bson.Build().Int32("_id", int32(made)).String("x", strings.Repeat("x", 300)).Doc())
				return err
			}))
		}
	}
	fill(50)
	if n := f.truncateAll(all); n != 0 {
		t.Errorf("%d entries are gone of an oplog that is not full", n)
	}
	fill(250)
	first, err := f.OldestLogged(context.Background())
	f.must(err)
	if n := f.truncateAll(first); n != 0 {
		t.Errorf("%d entries are gone that are to be kept", n)
	}
	if n := f.truncateAll(all); n == 0 || f.oplogBytes() > size || f.oplogBytes() < size*9/10 {
		t.Errorf("%d entries are gone, and %d bytes are left", n, f.oplogBytes())
	}
	if now, err := f.OldestLogged(context.Background()); err != nil || now <= first {
		t.Error("the oldest entries are there yet", err)
	}
	if n := f.truncateAll(all); n != 0 {
		t.Errorf("%d more are gone", n)
	}

	// What is so young stays, also after a restart.
	f.clock.Advance(time.Hour)
	young := oplog.NewTimestamp(uint32(f.clock.Now().Unix()), 0)
	fill(300)
	f.reopen()
	f.truncateAll(young)
	if now, err := f.OldestLogged(context.Background()); err != nil || now < young || f.oplogBytes() < 2*size {
		t.Error("entries are gone that are young, or there that are old", now, young, f.oplogBytes(), err)
	}
	f.must(f.Resize(context.Background(), 4*size))
	f.reopen()
	if n := f.truncateAll(all); n != 0 {
		t.Errorf("%d entries are gone though there is room", n)
	}
	f.must(f.Resize(context.Background(), 1))
	f.truncateAll(all)
	if entries, _ := f.entries(); len(entries) != 1 {
		t.Errorf("%d entries are left", len(entries))
	}
	if now, err := f.OldestLogged(context.Background()); err != nil || now != f.LastLogged() {
		t.Error("the last one is gone", err)
	}
}
