package command

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/ebbdb/ebb/internal/bson"
	"github.com/ebbdb/ebb/internal/storage/oplog"
)

// kept is how many images there are; what is kept must be in order.
func (h *harness) kept(t *testing.T) int64 {
	t.Helper()
	valid := h.ok(t, "config", "{validate: 'system.preimages', full: true}")
	if !valid.Lookup("valid").Truthy() {
		t.Error(valid)
	}
	n := h.ok(t, "config", "{count: 'system.preimages'}").Lookup("n").TruncInt64()
	if listed := valid.Lookup("nrecords").TruncInt64(); listed != n {
		t.Errorf("%d images are counted, and there are %d", n, listed)
	}
	return n
}

// TestImagesExpire: images go with the entries of the oplog that they belong to, and by the time that the cluster parameter says.
func TestImagesExpire(t *testing.T) {
	h := member(t)
	drop := func() {
		t.Helper()
		if err := h.server.dropImages(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	for _, c := range []string{"a", "b", "c"} {
		h.ok(t, "test", "{create: '"+c+"', changeStreamPreAndPostImages: {enabled: true}}")
		h.ok(t, "test", "{insert: '"+c+"', documents: [{_id: 1}, {_id: 2}]}")
	}
	many := "{update: 'a', updates: ["
	for i := range 700 {
		many += fmt.Sprintf("{q: {_id: 1}, u: {$set: {x: %d}}}, {q: {_id: 2}, u: {$set: {x: %d}}},", i, i)
	}
	h.ok(t, "test", strings.TrimSuffix(many, ",")+"]}")
	h.ok(t, "test", "{update: 'b', updates: [{q: {_id: 1}, u: {$set: {x: 1}}}]}")
	between := h.server.Query.Store.LastLogged()
	h.ok(t, "test", "{delete: 'b', deletes: [{q: {}, limit: 0}]}")
	h.clock.Advance(time.Minute)
	h.ok(t, "test", "{update: 'c', updates: [{q: {_id: 1}, u: {$set: {x: 1}}}]}")
	h.ok(t, "test", "{update: 'a', updates: [{q: {_id: 1}, u: {$set: {x: 'y'}}}]}")
	if drop(); h.kept(t) != 1400+1+2+1+1 {
		t.Errorf("%d are kept without a limit", h.kept(t))
	}
	// What the oplog does not tell of any more.
	if n, err := h.server.Query.Store.DropPreImages(t.Context(), between+1); n != 1401 || err != nil {
		t.Errorf("%d were deleted, %v", n, err)
	}
	if n := h.kept(t); n != 4 {
		t.Errorf("%d are left", n)
	}
	h.ok(t, "admin", "{setClusterParameter: {changeStreamOptions: {preAndPostImages: {expireAfterSeconds: 59}}}}")
	if drop(); h.kept(t) != 2 {
		t.Errorf("%d are left", h.kept(t))
	}
	h.clock.Advance(time.Minute)
	if drop(); h.kept(t) != 0 {
		t.Errorf("%d are left", h.kept(t))
	}
	h.ok(t, "admin", "{setClusterParameter: {changeStreamOptions: {preAndPostImages: {expireAfterSeconds: 'off'}}}}")
	h.ok(t, "test", "{update: 'c', updates: [{q: {_id: 1}, u: {$set: {x: 2}}}]}")
	h.clock.Advance(time.Hour)
	if drop(); h.kept(t) != 1 {
		t.Errorf("%d are left", h.kept(t))
	}
	if n, err := h.server.Query.Store.DropPreImages(t.Context(), oplog.Timestamp(0)); n != 0 || err != nil {
		t.Errorf("%d were deleted, %v", n, err)
	}
}

// TestImagesOfALargeTransaction: each image is found by the entry that its operation is in.
func TestImagesOfALargeTransaction(t *testing.T) {
	h := member(t)
	h.ok(t, "test", "{create: 'c', changeStreamPreAndPostImages: {enabled: true}}")
	h.ok(t, "test", "{insert: 'c', documents: [{_id: 0, n: 0}, {_id: 1, n: 1}, {_id: 2, n: 2}, {_id: 3, n: 3}]}")
	w := h.watch("test", "c", "fullDocument: 'required', fullDocumentBeforeChange: 'required'", ", {$project: {documentKey: 1, 'fullDocument.n': 1, fullDocumentBeforeChange: 1, long: {$strLenBytes: '$fullDocument.s'}}}")
	long := strings.Repeat("x", 6<<20)
	send := func(db string, b *bson.Builder, starts bool) {
		t.Helper()
		b.Object("lsid").Binary("id", 4, make([]byte, 16)).End().Int64("txnNumber", 1).Bool("autocommit", false)
		if starts {
			b.Bool("startTransaction", true)
		}
		if reply := h.send(t.Context(), "1", db, b.Doc()); !reply.Body.Lookup("ok").Truthy() {
			t.Fatal(reply.Body)
		}
	}
	for i := range 4 {
		send("test", bson.Build().String("update", "c").Array("updates").Object("0").Object("q").Int32("_id", int32(i)).End().Object("u").Object("$set").String("s", long).End().End().End().End(), i == 0)
	}
	send("admin", bson.Build().Int32("commitTransaction", 1), false)
	for i := range 4 {
		events := w.next(1)
		if len(events) != 1 {
			t.Fatal(i, events)
		}
		e := events[0]
		want := fmt.Sprintf("{ _id: %d, n: %d }", i, i)
		if got := e.Lookup("fullDocumentBeforeChange").String(); got != want || e.Lookup("long").TruncInt64() != int64(len(long)) || e.Lookup("fullDocument").Doc().Lookup("n").Int32() != int32(i) {
			t.Errorf("operation %d: %s", i, e)
		}
	}
}
