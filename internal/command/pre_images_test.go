package command

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/ebbdb/ebb/internal/bson"
	"github.com/ebbdb/ebb/internal/storage/memberlog"
	"github.com/ebbdb/ebb/internal/storage/oplog"
	"github.com/ebbdb/ebb/internal/testseed"
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
	if n, err := memberlog.DropImages(t.Context(), h.server.Query.Store, between+1); n.Images != 1401 || err != nil {
		t.Errorf("%v were deleted, %v", n, err)
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
	if n, err := memberlog.DropImages(t.Context(), h.server.Query.Store, oplog.Timestamp(0)); n.Images != 0 || err != nil {
		t.Errorf("%v were deleted, %v", n, err)
	}
}

// TestStatusOfImages: serverStatus tells how many images there are, and what was deleted.
func TestStatusOfImages(t *testing.T) {
	h := member(t)
	h.ok(t, "test", "{create: 'c', changeStreamPreAndPostImages: {enabled: true}}")
	h.ok(t, "test", "{insert: 'c', documents: [{_id: 1}, {_id: 2}]}")
	h.ok(t, "test", "{update: 'c', updates: [{q: {}, u: {$set: {a: 1}}, multi: true}]}")
	h.ok(t, "admin", "{setClusterParameter: {changeStreamOptions: {preAndPostImages: {expireAfterSeconds: 59}}}}")
	h.server.purge.add(memberlog.Dropped{Images: 3, Bytes: 300}, time.Second)
	h.server.purge.add(memberlog.Dropped{Images: 1, Bytes: 50}, time.Second)
	got := h.ok(t, "admin", "{serverStatus: 1}").Lookup("changeStreamPreImages").Doc().Text()
	want := "{ purgingJob: { totalPass: NumberLong(2), docsDeleted: NumberLong(4), bytesDeleted: NumberLong(350), scannedCollections: NumberLong(2), " +
		"scannedInternalCollections: NumberLong(0), maxStartWallTimeMillis: NumberLong(0), timeElapsedMillis: NumberLong(2000) }, " +
		"expireAfterSeconds: NumberLong(59), numDocs: NumberLong(2), totalBytes: NumberLong(252), avgDocSize: 126, " +
		"docsInserted: NumberLong(2), storageSize: NumberLong(4096), freeStorageSize: NumberLong(0) }"
	if got != want {
		t.Errorf("serverStatus tells %s\nwant %s", got, want)
	}
}

// TestImagesOfALargeTransaction: each image is found by the entry that its operation is in.
func TestImagesOfALargeTransaction(t *testing.T) {
	h := member(t)
	h.ok(t, "test", "{create: 'c', changeStreamPreAndPostImages: {enabled: true}}")
	h.ok(t, "test", "{insert: 'c', documents: [{_id: 0, n: 0}, {_id: 1, n: 1}, {_id: 2, n: 2}, {_id: 3, n: 3}]}")
	w := h.watch("test", "c", "fullDocument: 'required', fullDocumentBeforeChange: 'required'", ", {$project: {documentKey: 1, 'fullDocument.n': 1, fullDocumentBeforeChange: 1, long: {$strLenBytes: '$fullDocument.s'}}}")
	long := strings.Repeat("x", 6<<20)
	for i := range 4 {
		h.statement(t, "test", bson.Build().String("update", "c").Array("updates").Object("0").Object("q").Int32("_id", int32(i)).End().Object("u").Object("$set").String("s", long).End().End().End().End(), i == 0)
	}
	h.statement(t, "admin", bson.Build().Int32("commitTransaction", 1), false)
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

// randomUpdate is one that changes fields, fields within, and arrays, by name, by position and by filter.
func randomUpdate(rng *rand.Rand) (update, filters string) {
	value := []string{"1", "'a longer text that is not short'", "{x: 1}", "[1, 2]", "null", "{x: {y: [1, {z: 2}]}}"}[rng.IntN(6)]
	field := []string{"a", "b", "b.x", "b.x.y", "l", "l.0", "l.2", "l.5", "d.0.n", "d.1.n", "new", "new.er", "'7'"}[rng.IntN(13)]
	if strings.Contains(field, ".") {
		field = "'" + field + "'"
	}
	switch rng.IntN(12) {
	case 0:
		return "{$unset: {" + field + ": 1}}", ""
	case 1:
		return fmt.Sprintf("{$push: {l: %s}}", value), ""
	case 2:
		return fmt.Sprintf("{$push: {l: {$each: [%s, 5], $position: %d}}, $set: {a: %d}}", value, rng.IntN(4), rng.IntN(9)), ""
	case 3:
		return fmt.Sprintf("{$push: {l: {$each: [%s], $slice: -%d}}}", value, 1+rng.IntN(6)), ""
	case 4:
		return fmt.Sprintf("{$addToSet: {l: %s}}", value), ""
	case 5:
		return "{$pop: {l: 1}}", ""
	case 6:
		return "{$pull: {l: 1}}", ""
	case 7:
		return "{$inc: {'d.$[].n': 1}}", ""
	case 8:
		return fmt.Sprintf("{$set: {'d.$[e].t': %s}}", value), fmt.Sprintf("{'e.n': {$gte: %d}}", rng.IntN(12))
	case 9:
		return fmt.Sprintf("{$rename: {a: 'moved%d'}, $set: {'b.z': %s}}", rng.IntN(3), value), ""
	case 10:
		return "{$set: {b: {x: {y: 1, w: 'a longer text that is not short'}, k: 2}, l: [0, 1, 2, 3], d: [{n: 1}, {n: 2}], a: 1}}", ""
	}
	return "{$set: {" + field + ": " + value + "}}", ""
}

// TestPostImagesAreTheDocuments: whatever modifiers do, what an event says of the document behind the change, which is made of the one
// before it and of what the oplog says has changed, is the document.
func TestPostImagesAreTheDocuments(t *testing.T) {
	h := member(t)
	rng := rand.New(rand.NewPCG(testseed.Of(t), 0))
	h.ok(t, "test", "{create: 'c', changeStreamPreAndPostImages: {enabled: true}}")
	h.ok(t, "test", "{insert: 'c', documents: [{_id: 1, a: 1, b: {x: {y: 1}}, l: [1, 2, 3], d: [{n: 1}, {n: 2}, {n: 3}]}]}")
	w := h.watch("test", "c", "fullDocument: 'required', fullDocumentBeforeChange: 'required'", "")
	before, changes := h.ok(t, "test", "{find: 'c'}"), 0
	for range 1500 {
		update, filters := randomUpdate(rng)
		reply := h.send(t.Context(), "1", "test", bson.MustDoc("{update: 'c', updates: [{q: {_id: 1}, u: "+update+", arrayFilters: ["+filters+"]}]}")).Body
		after := h.ok(t, "test", "{find: 'c'}")
		events := w.next(0)
		if modified := reply.Lookup("nModified").TruncInt64(); int64(len(events)) != modified {
			t.Fatalf("%s has %d events: %s", update, len(events), reply)
		}
		if len(events) == 1 {
			changes++
			e := events[0]
			one := func(reply bson.Doc) bson.Value {
				return reply.Lookup("cursor").Doc().Lookup("firstBatch").Doc().Index(0)
			}
			if !bson.Identical(e.Lookup("fullDocument"), one(after)) || !bson.Identical(e.Lookup("fullDocumentBeforeChange"), one(before)) {
				t.Fatalf("%s: %s\nis %s\nwas %s", update, e, one(after), one(before))
			}
		}
		before = after.Clone()
	}
	if changes < 300 {
		t.Errorf("only %d updates changed anything", changes)
	}
}
