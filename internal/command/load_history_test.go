package command

import (
	"testing"
	"time"

	"github.com/ebbdb/ebb/internal/bson"
)

// TestLoadHistory writes documents of the history by hand: they count what has happened since the one before, wait while nothing may be written, and
// the oldest go.
func TestLoadHistory(t *testing.T) {
	h := newHarness(t)
	run := func(db, text string) bson.Doc { return h.send(t.Context(), "1", db, bson.MustDoc(text)).Body }
	history := func() bson.Doc {
		return run("local", "{find: 'ebb_history', sort: {$natural: -1}, limit: 1}").Lookup("cursor").Doc().Lookup("firstBatch").Doc().Index(0).Doc()
	}
	last := h.server.sampleLoad()
	run("test", "{insert: 'c', documents: [{}, {}, {}]}")
	run("test", "{find: 'c'}")
	run("test", "{delete: 'c', deletes: [{q: {}, limit: 1}]}")
	h.clock.Advance(time.Minute)
	last = h.server.recordLoad(t.Context(), last)
	for name, want := range map[string]int64{"inserted": 3, "queried": 1, "removed": 1, "updated": 0, "seconds": 60} {
		if got := history().Lookup(name).TruncInt64(); got != want {
			t.Errorf("%s is %d, not %d", name, got, want)
		}
	}
	run("admin", "{fsync: 1, lock: true}")
	h.clock.Advance(time.Minute)
	last = h.server.recordLoad(t.Context(), last)
	run("admin", "{fsyncUnlock: 1}")
	h.clock.Advance(time.Minute)
	last = h.server.recordLoad(t.Context(), last)
	if got := history().Lookup("seconds").AsDouble(); got != 120 {
		t.Errorf("after the lock a document is about %v s", got)
	}
	for range loadHistoryDocuments {
		last = h.server.recordLoad(t.Context(), last)
	}
	if n := run("local", "{count: 'ebb_history'}").Lookup("n").TruncInt64(); n != loadHistoryDocuments {
		t.Errorf("%d documents are kept", n)
	}
}

// TestKeepHistory has a document for each interval, of the clock that the server goes by.
func TestKeepHistory(t *testing.T) {
	h := newHarness(t)
	h.server.KeepHistory()
	n := func() int64 {
		return h.send(t.Context(), "1", "local", bson.MustDoc("{count: 'ebb_history'}")).Body.Lookup("n").TruncInt64()
	}
	for want := range int64(3) {
		for t.Context().Err() == nil && n() < want+1 { // it waits for its timer at some moment
			h.clock.Advance(time.Minute)
		}
	}
}
