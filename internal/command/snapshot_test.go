package command

import (
	"strconv"
	"testing"
	"time"

	"github.com/ebbdb/ebb/internal/bson"
	"github.com/ebbdb/ebb/internal/mongoerr"
)

// TestSnapshotCursor: a cursor gives what was there when it was opened, whatever happens between its batches and by whatever plan, until the window is over.
func TestSnapshotCursor(t *testing.T) {
	for name, find := range map[string]string{
		"scan":      "{find: 'c', batchSize: 2, readConcern: {level: 'snapshot'}}",
		"index":     "{find: 'c', hint: {x: 1}, batchSize: 2, readConcern: {level: 'snapshot'}}",
		"sort":      "{find: 'c', sort: {y: -1}, batchSize: 2, readConcern: {level: 'snapshot'}}",
		"aggregate": "{aggregate: 'c', pipeline: [{$match: {x: {$gte: 0}}}], cursor: {batchSize: 2}, readConcern: {level: 'snapshot'}}",
	} {
		t.Run(name, func(t *testing.T) {
			h := member(t)
			h.ok(t, "test", "{createIndexes: 'c', indexes: [{key: {x: 1}, name: 'x'}, {key: {at: 1}, name: 'at', expireAfterSeconds: 1000}]}")
			for i := range 10 {
				h.ok(t, "test", "{insert: 'c', documents: [{_id: "+strconv.Itoa(i)+", x: "+strconv.Itoa(i%3)+", y: "+strconv.Itoa(i)+", at: ISODate('2026-01-02T03:04:05Z')}]}")
			}
			first := h.ok(t, "test", find)
			at := first.Lookup("cursor").Doc().Lookup("atClusterTime")
			if at.Type != bson.TypeTimestamp {
				t.Fatal(first)
			}
			id, _ := cursorOf(first, "firstBatch")
			seen := map[string]int{}
			note := func(reply bson.Doc, batch string) {
				for it := reply.Lookup("cursor").Doc().Lookup(batch).Doc().Iter(); it.Next(); {
					d := it.Value().Doc()
					if !d.Lookup("z").IsMissing() {
						t.Errorf("%s is of later", d)
					}
					seen[d.Lookup("_id").Text()]++
				}
			}
			note(first, "firstBatch")
			more := bson.Build().Int64("getMore", id).String("collection", "c").Int32("batchSize", 2).Doc().String()
			for n := 0; id != 0; n++ {
				switch n {
				case 0:
					h.ok(t, "test", "{insert: 'c', documents: [{_id: 100, x: 1, y: 3, z: 1}]}")
					h.ok(t, "test", "{update: 'c', updates: [{q: {}, u: {$set: {z: 1, x: 9, at: ISODate('2026-01-02T03:05:45Z')}}, multi: true}]}")
				case 1:
					h.ok(t, "test", "{delete: 'c', deletes: [{q: {_id: {$gte: 3}}, limit: 0}]}")
				case 2:
					h.ok(t, "test", "{dropIndexes: 'c', index: 'at'}")
				}
				reply := h.ok(t, "test", more)
				if got := reply.Lookup("cursor").Doc().Lookup("atClusterTime"); !bson.Equal(got, at) {
					t.Errorf("%s, not %s", got, at)
				}
				note(reply, "nextBatch")
				id, _ = cursorOf(reply, "nextBatch")
			}
			if len(seen) != 10 {
				t.Errorf("%d documents", len(seen))
			}
			for doc, n := range seen {
				if n != 1 {
					t.Errorf("%s came %d times", doc, n)
				}
			}
		})
	}
}

// TestSnapshotCursorEnds: a cursor does not hold up what others delete for longer than the window.
func TestSnapshotCursorEnds(t *testing.T) {
	h := member(t)
	h.ok(t, "test", "{insert: 'c', documents: [{_id: 1}, {_id: 2}, {_id: 3}]}")
	id, _ := cursorOf(h.ok(t, "test", "{find: 'c', batchSize: 1, readConcern: {level: 'snapshot'}}"), "firstBatch")
	h.clock.Advance(301 * time.Second)
	reply := h.send(t.Context(), "1", "test", bson.Build().Int64("getMore", id).String("collection", "c").Doc()).Body
	if code := reply.Lookup("code"); code.Type != bson.TypeInt32 || mongoerr.Code(code.Int32()) != mongoerr.SnapshotTooOld {
		t.Error(reply)
	}
}
