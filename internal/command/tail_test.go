package command

import (
	"fmt"
	"runtime"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/ebbdb/ebb/internal/bson"
	"github.com/ebbdb/ebb/internal/mongoerr"
)

// tail opens a tailable cursor on a new capped collection with the one document {_id: 0} and returns its id.
func (h *harness) tail(max int, options string) int64 {
	h.t.Helper()
	h.must("1", "test", fmt.Sprintf("{create: 'c', capped: true, size: 1000000, max: %d}", max))
	h.insert("1", 0)
	return h.open("1", options)
}

func (h *harness) open(conn, options string) int64 {
	h.t.Helper()
	id := h.must(conn, "test", "{find: 'c', tailable: true"+options+"}").Lookup("cursor").Doc().Lookup("id").Int64()
	if id == 0 {
		h.t.Fatal("the cursor is dead")
	}
	return id
}

func (h *harness) insert(conn string, ids ...int) {
	h.t.Helper()
	docs := ""
	for _, id := range ids {
		docs += fmt.Sprintf("{_id: %d},", id)
	}
	h.must(conn, "test", "{insert: 'c', documents: ["+docs[:len(docs)-1]+"]}")
}

func getMoreText(id int64, rest string) string {
	return fmt.Sprintf("{getMore: NumberLong('%d'), collection: 'c'%s}", id, rest)
}

// idsOf are the _ids of a batch; alive says whether the cursor is still open.
func idsOf(reply bson.Doc) (ids []int32, alive bool) {
	cursor := reply.Lookup("cursor").Doc()
	if cursor.IsEmpty() {
		return nil, false
	}
	for it := cursor.Lookup("nextBatch").Doc().Iter(); it.Next(); {
		ids = append(ids, it.Value().Doc().Lookup("_id").Int32())
	}
	return ids, cursor.Lookup("id").Int64() != 0
}

func (h *harness) wantBatch(reply bson.Doc, want ...int32) {
	h.t.Helper()
	if ids, alive := idsOf(reply); !slices.Equal(ids, want) || !alive {
		h.t.Errorf("%s, want %v and an open cursor", reply, want)
	}
}

// taken waits until a getMore has the one cursor.
func (h *harness) taken() {
	for len(h.server.Cursors.Idle()) > 0 {
		runtime.Gosched()
	}
}

// TestWhoFollowsIsCounted: who waits for what comes is told apart from those for whom sweeps rest.
func TestWhoFollowsIsCounted(t *testing.T) {
	h := newHarness(t)
	plain := h.tail(100, "")
	waiting := h.open("1", ", awaitData: true")
	h.insert("1", 1)
	h.must("1", "test", getMoreText(plain, ""))
	if n := h.server.Ops.Following(); n != 0 {
		t.Errorf("%d follow", n)
	}
	h.must("1", "test", getMoreText(waiting, ""))
	if n, all := h.server.Ops.Following(), h.server.Ops.Started(); n != 1 || all <= 1 {
		t.Errorf("%d of %d follow", n, all)
	}
}

func TestATailableCursorGoesOn(t *testing.T) {
	h := newHarness(t)
	id := h.tail(100, "")
	h.wantBatch(h.must("1", "test", getMoreText(id, "")))
	h.insert("1", 1, 2, 3)
	h.wantBatch(h.must("1", "test", getMoreText(id, ", batchSize: 2")), 1, 2)
	h.wantBatch(h.must("1", "test", getMoreText(id, "")), 3)
	h.wantBatch(h.must("1", "test", getMoreText(id, "")))
	wantCode(t, h.send(t.Context(), "1", "test", bson.MustDoc(getMoreText(id, ", maxTimeMS: 1"))), mongoerr.BadValue)
	h.must("1", "test", "{drop: 'c'}")
	wantCode(t, h.send(t.Context(), "1", "test", bson.MustDoc(getMoreText(id, ""))), mongoerr.QueryPlanKilled)
}

// What skip, limit and filter have done so far holds for what comes later.
func TestATailableCursorKeepsItsStages(t *testing.T) {
	h := newHarness(t)
	id := h.tail(100, ", filter: {_id: {$ne: 2}}, skip: 2, limit: 2")
	h.insert("1", 1, 2, 3)
	h.wantBatch(h.must("1", "test", getMoreText(id, "")), 3)
	h.insert("1", 4, 5)
	h.wantBatch(h.must("1", "test", getMoreText(id, "")), 4)
	h.wantBatch(h.must("1", "test", getMoreText(id, "")))
}

func TestATailableCursorLosesItsPlace(t *testing.T) {
	h := newHarness(t)
	id := h.tail(3, "")
	h.insert("1", 1, 2)
	h.wantBatch(h.must("1", "test", getMoreText(id, "")), 1, 2)
	h.insert("1", 3, 4)
	h.wantBatch(h.must("1", "test", getMoreText(id, "")), 3, 4)
	h.insert("1", 5, 6, 7)
	wantCode(t, h.send(t.Context(), "1", "test", bson.MustDoc(getMoreText(id, ""))), mongoerr.CappedPositionLost)
	wantCode(t, h.send(t.Context(), "1", "test", bson.MustDoc(getMoreText(id, ""))), mongoerr.CursorNotFound)
}

func TestAwaitDataWaitsForDocuments(t *testing.T) {
	h := newHarness(t)
	id := h.tail(100, ", awaitData: true")
	waiting := h.start("2", "test", getMoreText(id, ", maxTimeMS: 60000"))
	h.taken()
	h.insert("1", 1)
	h.wantBatch((<-waiting).Body, 1)

	h.wantBatch(h.must("1", "test", getMoreText(id, ", maxTimeMS: 0")))
	begun := h.clock.Now()
	waiting = h.start("2", "test", getMoreText(id, ""))
	h.taken() // or the cursor is idle for so long that it ends
	h.wantBatch(h.later(waiting, 100*time.Millisecond).Body)
	if d := h.clock.Now().Sub(begun); d < awaitPatience {
		t.Errorf("it waited for %s", d)
	}
}

// Documents that the filter passes over wake nobody's client.
func TestAwaitDataWaitsForWhatMatches(t *testing.T) {
	h := newHarness(t)
	id := h.tail(100, ", awaitData: true, filter: {_id: {$gt: 1}}")
	waiting := h.start("2", "test", getMoreText(id, ", maxTimeMS: 60000"))
	h.taken()
	h.insert("1", 1)
	h.insert("1", 2)
	h.wantBatch((<-waiting).Body, 2)
}

func TestAwaitDataEnds(t *testing.T) {
	for name, c := range map[string]struct {
		end  func(h *harness, id int64, stop chan struct{})
		code mongoerr.Code
	}{
		"killed": {func(h *harness, id int64, _ chan struct{}) {
			h.must("1", "test", fmt.Sprintf("{killCursors: 'c', cursors: [NumberLong('%d')]}", id))
		}, mongoerr.CursorKilled},
		"dropped": {func(h *harness, _ int64, _ chan struct{}) { h.must("1", "test", "{drop: 'c'}") }, mongoerr.QueryPlanKilled},
		"stopped": {func(_ *harness, _ int64, stop chan struct{}) { close(stop) }, mongoerr.InterruptedAtShutdown},
		"overrun": {func(h *harness, _ int64, _ chan struct{}) { h.insert("1", 1, 2, 3, 4) }, mongoerr.CappedPositionLost},
	} {
		t.Run(name, func(t *testing.T) {
			h := newHarness(t)
			stop := make(chan struct{})
			h.server.Stopping = stop
			id := h.tail(3, ", awaitData: true")
			waiting := h.start("2", "test", getMoreText(id, ", maxTimeMS: 60000"))
			h.taken()
			c.end(h, id, stop)
			wantCode(t, <-waiting, c.code)
			if open, _, _, _ := h.server.Cursors.Counts(); open != 0 {
				t.Errorf("%d cursors are left open", open)
			}
		})
	}
}

// Every reader sees every document, in the order of the collection, whoever writes at the same time.
func TestTailingReadersAmongWriters(t *testing.T) {
	const writers, each, readers = 4, 50, 3
	h := newHarness(t)
	first := h.tail(10000, ", awaitData: true")
	ids := []int64{first}
	for range readers - 1 {
		ids = append(ids, h.open("1", ", awaitData: true"))
	}
	seen := make([][]int32, readers)
	var wait sync.WaitGroup
	for i, id := range ids {
		c := NewConn(int64(100+i), "127.0.0.1:1", "127.0.0.1:2")
		wait.Go(func() {
			for len(seen[i]) < writers*each {
				reply := h.sendOn(t.Context(), c, "test", bson.MustDoc(getMoreText(id, ", maxTimeMS: 60000"))).Body
				got, alive := idsOf(reply)
				if !alive || len(got) == 0 {
					t.Errorf("%s", reply)
					return
				}
				seen[i] = append(seen[i], got...)
			}
		})
	}
	for w := range writers {
		c := NewConn(int64(200+w), "127.0.0.1:1", "127.0.0.1:2")
		wait.Go(func() {
			for n := range each {
				reply := h.sendOn(t.Context(), c, "test", bson.MustDoc(fmt.Sprintf("{insert: 'c', documents: [{_id: %d}]}", 1+w*each+n))).Body
				if reply.Lookup("n").Int32() != 1 { // the readers would wait for it without end
					t.Errorf("%s", reply)
				}
			}
		})
	}
	wait.Wait()
	for _, s := range seen[1:] {
		if !slices.Equal(s, seen[0]) {
			t.Errorf("one saw %v, another %v", seen[0], s)
		}
	}
	if slices.Sort(seen[0]); seen[0][0] != 1 || seen[0][len(seen[0])-1] != writers*each || len(slices.Compact(seen[0])) != writers*each {
		t.Errorf("seen was %v", seen[0])
	}
}

// A reader that a wrapping collection overtakes is told so: it never passes over a document in silence.
func TestATailingReaderOfAWrappingCollection(t *testing.T) {
	const documents = 400
	h := newHarness(t)
	id := h.tail(5, ", awaitData: true")
	writer := NewConn(100, "127.0.0.1:1", "127.0.0.1:2")
	var wait sync.WaitGroup
	wait.Go(func() {
		for n := 1; n <= documents; n++ {
			h.sendOn(t.Context(), writer, "test", bson.MustDoc(fmt.Sprintf("{insert: 'c', documents: [{_id: %d}]}", n)))
		}
	})
	for next := int32(1); next <= documents; {
		reply := h.send(t.Context(), "1", "test", bson.MustDoc(getMoreText(id, ", maxTimeMS: 60000")))
		if !reply.Body.Lookup("ok").Truthy() {
			wantCode(t, reply, mongoerr.CappedPositionLost)
			break
		}
		got, _ := idsOf(reply.Body)
		for _, n := range got {
			if n != next {
				t.Fatalf("%d came where %d was next", n, next)
			}
			next++
		}
	}
	wait.Wait()
}

// docs/differences.md: a cursor that does not tail goes on behind what was overwritten.
func TestACursorOutlivesTheWrap(t *testing.T) {
	h := newHarness(t)
	h.tail(3, "")
	h.insert("1", 1, 2)
	id := h.must("1", "test", "{find: 'c', batchSize: 1}").Lookup("cursor").Doc().Lookup("id").Int64()
	h.insert("1", 3, 4, 5)
	if ids, alive := idsOf(h.must("1", "test", getMoreText(id, ""))); !slices.Equal(ids, []int32{3, 4, 5}) || alive {
		t.Errorf("%v %v", ids, alive)
	}
}
