package command

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/ebbdb/ebb/internal/bson"
)

// TestReadLater: what a getMore is the first to read it reads as of that getMore: what has expired since its cursor was opened is hidden.
func TestReadLater(t *testing.T) {
	h := member(t)
	h.ok(t, "test", "{createIndexes: 'c', indexes: [{key: {_ts: 1}, name: 'ts', expireAfterSeconds: 10}]}")
	h.ok(t, "test", "{insert: 'c', documents: [{_id: 1}]}")
	w := h.watch("test", "c", "fullDocument: 'updateLookup'", "")
	joining := h.ok(t, "test", "{aggregate: 1, pipeline: [{$documents: [{k: 1}]}, {$lookup: {from: 'c', localField: 'k', foreignField: '_id', as: 'c'}}], cursor: {batchSize: 0}}")
	h.ok(t, "test", "{update: 'c', updates: [{q: {_id: 1}, u: {$set: {a: 1}}}]}")
	h.clock.Advance(time.Minute)
	if events := w.next(0); len(events) != 1 || events[0].Lookup("fullDocument").Type != bson.TypeNull {
		t.Errorf("the stream tells %s", events)
	}
	cursor := joining.Lookup("cursor").Doc()
	name := strings.TrimPrefix(cursor.Lookup("ns").Str(), "test.")
	more := h.ok(t, "test", fmt.Sprintf("{getMore: NumberLong('%d'), collection: '%s'}", cursor.Lookup("id").Int64(), name))
	if got := more.Lookup("cursor").Doc().Lookup("nextBatch").String(); got != "[ { k: 1, c: [] } ]" {
		t.Errorf("the join gives %s", got)
	}
}

// TestSortedBefore: what a cursor has read to sort it comes in later batches, though it has expired meanwhile (difference 4).
func TestSortedBefore(t *testing.T) {
	h := member(t)
	h.ok(t, "test", "{createIndexes: 'c', indexes: [{key: {_ts: 1}, name: 'ts', expireAfterSeconds: 10}]}")
	h.ok(t, "test", "{insert: 'c', documents: [{_id: 1}, {_id: 2}, {_id: 3}]}")
	open := func(options string) int64 {
		return h.ok(t, "test", "{find: 'c', batchSize: 1"+options+"}").Lookup("cursor").Doc().Lookup("id").Int64()
	}
	sorted, plain := open(", sort: {a: 1}"), open("")
	h.clock.Advance(time.Minute)
	for id, want := range map[int64]int{sorted: 2, plain: 0} {
		if ids, _ := idsOf(h.ok(t, "test", getMoreText(id, ""))); len(ids) != want {
			t.Errorf("the next batch has %v, want %d documents", ids, want)
		}
	}
}
