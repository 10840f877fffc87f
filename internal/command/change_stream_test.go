package command

import (
	"context"
	"fmt"
	"math/rand/v2"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/ebbdb/ebb/internal/bson"
	"github.com/ebbdb/ebb/internal/cursor"
	"github.com/ebbdb/ebb/internal/mongoerr"
	"github.com/ebbdb/ebb/internal/namespace"
	"github.com/ebbdb/ebb/internal/query"
	"github.com/ebbdb/ebb/internal/storage"
	"github.com/ebbdb/ebb/internal/testseed"
)

// watching is a change stream as a client has it: what it was opened with, and where it stands.
type watching struct {
	h          *harness
	conn       *Conn
	id         int64
	db, coll   string
	mark, last bson.Doc
}

// tryWatch opens a change stream on a collection, on the database where coll is "", with fields of $changeStream and stages as text.
func (h *harness) tryWatch(conn *Conn, db, coll, fields, stages string, after bson.Doc) (*watching, []bson.Doc, Reply) {
	w := &watching{h: h, conn: conn, db: db, coll: coll}
	on := "1"
	if coll == "" {
		w.coll = "$cmd.aggregate"
	} else {
		on = "'" + coll + "'"
	}
	b := bson.Build().Fields(bson.MustDoc("{" + fields + "}"))
	if after != nil {
		b.Document("resumeAfter", after)
	}
	text := fmt.Sprintf("{aggregate: %s, pipeline: [{$changeStream: %s}%s], cursor: {batchSize: 0}}", on, b.Doc().String(), stages)
	if after != nil { // whose text is cut where it is long
		pipeline := bson.Build().Array("p").Object("0").Document("$changeStream", b.Doc()).End()
		for i, stage := range bson.MustDoc("{s: [" + strings.TrimPrefix(stages, ",") + "]}").Lookup("s").Doc().Values(nil) {
			pipeline.Value(bson.IndexKey(i+1), stage)
		}
		head := bson.Build()
		if coll == "" {
			head.Int32("aggregate", 1)
		} else {
			head.String("aggregate", coll)
		}
		reply := h.sendOn(h.t.Context(), conn, db, head.Value("pipeline", pipeline.End().Doc().Lookup("p")).Document("cursor", bson.MustDoc("{batchSize: 0}")).Doc())
		return w, w.took(reply.Body, "firstBatch"), reply
	}
	reply := h.sendOn(h.t.Context(), conn, db, bson.MustDoc(text))
	return w, w.took(reply.Body, "firstBatch"), reply
}

func (h *harness) watch(db, coll, fields, stages string) *watching {
	h.t.Helper()
	w, _, reply := h.tryWatch(NewConn(7, "127.0.0.1:1", "127.0.0.1:2"), db, coll, fields, stages, nil)
	if w.id == 0 {
		h.t.Fatal(reply.Body)
	}
	return w
}

// took notes what a reply says, and gives its events.
func (w *watching) took(reply bson.Doc, batch string) (events []bson.Doc) {
	cursor := reply.Lookup("cursor")
	if cursor.Type != bson.TypeObject {
		return nil
	}
	w.id = cursor.Doc().Lookup("id").Int64()
	w.mark = cursor.Doc().Lookup("postBatchResumeToken").Doc().Clone()
	for it := cursor.Doc().Lookup(batch).Doc().Iter(); it.Next(); {
		event := it.Value().Doc().Clone()
		events, w.last = append(events, event), event.Lookup("_id").Doc()
	}
	return events
}

func (w *watching) getMore(batchSize int, millis int) bson.Doc {
	b := bson.Build().Int64("getMore", w.id).String("collection", w.coll).Int32("maxTimeMS", int32(millis))
	if batchSize > 0 {
		b.Int32("batchSize", int32(batchSize))
	}
	return b.Doc()
}

func (w *watching) try(batchSize, millis int) ([]bson.Doc, Reply) {
	reply := w.h.sendOn(context.Background(), w.conn, w.db, w.getMore(batchSize, millis))
	return w.took(reply.Body, "nextBatch"), reply
}

// next is a batch of what is there already.
func (w *watching) next(batchSize int) []bson.Doc {
	w.h.t.Helper()
	events, reply := w.try(batchSize, 0)
	if !reply.Body.Lookup("ok").Truthy() {
		w.h.t.Fatal(reply.Body)
	}
	return events
}

// keys are the _ids of events' documents.
func keys(events []bson.Doc) (ids []int32) {
	for _, e := range events {
		ids = append(ids, e.Lookup("documentKey").Doc().Lookup("_id").Int32())
	}
	return ids
}

// waiting has getMores wait, each on a connection of its own, and gives their replies.
func (w *watching) waiting() <-chan Reply {
	out := make(chan Reply, 1)
	go func() { out <- w.h.sendOn(context.Background(), w.conn, w.db, w.getMore(0, 60_000)) }()
	return out
}

// awaitStreams returns when streams on so many namespaces wait.
func (h *harness) awaitStreams(namespaces int) {
	for {
		if n, _ := h.server.Query.Store.LogWatches().Waits(); n >= namespaces {
			return
		}
		runtime.Gosched()
	}
}

// woken is how often streams were woken so far.
func (h *harness) woken() int64 {
	_, n := h.server.Query.Store.LogWatches().Waits()
	return n
}

// TestStreamWaitsForItsOwn: a getMore waits until something happens to what the stream is about, and other writes wake nobody.
func TestStreamWaitsForItsOwn(t *testing.T) {
	h := member(t)
	h.ok(t, "test", "{create: 'c'}")
	w := h.watch("test", "c", "", "")
	got := w.waiting()
	h.awaitStreams(1)
	before := h.woken()
	h.ok(t, "test", "{insert: 'other', documents: [{_id: 1}, {_id: 2}]}")
	h.ok(t, "test", "{delete: 'other', deletes: [{q: {}, limit: 0}]}")
	select {
	case reply := <-got:
		t.Fatal("it was answered:", reply.Body)
	default:
	}
	if n := h.woken() - before; n != 0 {
		t.Errorf("it was woken %d times", n)
	}
	h.ok(t, "test", "{insert: 'c', documents: [{_id: 3}]}")
	if ids := keys(w.took((<-got).Body, "nextBatch")); !slices.Equal(ids, []int32{3}) {
		t.Error(ids)
	}
	if n := h.woken() - before; n != 1 {
		t.Errorf("it was woken %d times", n)
	}
}

// TestStreamWaitsASecond: a getMore that does not say for how long it waits does so for a second, and brings a token that has moved on.
func TestStreamWaitsASecond(t *testing.T) {
	h := member(t)
	w := h.watch("test", "c", "", "")
	first := w.mark
	h.ok(t, "test", "{insert: 'other', documents: [{_id: 1}]}")
	begun := h.clock.Now()
	out := make(chan Reply, 1)
	go func() {
		out <- h.sendOn(context.Background(), w.conn, w.db, bson.Build().Int64("getMore", w.id).String("collection", "c").Doc())
	}()
	h.taken()
	reply := h.later(out, 100*time.Millisecond)
	if events := w.took(reply.Body, "nextBatch"); len(events) != 0 || h.clock.Now().Sub(begun) < awaitPatience {
		t.Error(reply.Body)
	}
	if w.mark.Lookup("_data").Str() <= first.Lookup("_data").Str() {
		t.Errorf("the token stands still at %s", w.mark)
	}
	again, _, _ := h.tryWatch(w.conn, "test", "c", "", "", w.mark)
	h.ok(t, "test", "{insert: 'c', documents: [{_id: 2}]}")
	if ids := keys(again.next(0)); !slices.Equal(ids, []int32{2}) {
		t.Error(ids)
	}
}

// TestStreamReadsItsOwn: a getMore reads entries when there are some about its collection, and none otherwise.
func TestStreamReadsItsOwn(t *testing.T) {
	h := member(t)
	h.ok(t, "test", "{create: 'c'}")
	h.ok(t, "test", "{create: 'other'}")
	w := h.watch("test", "c", "", "")
	for i := range 50 {
		h.ok(t, "test", fmt.Sprintf("{insert: 'other', documents: [{_id: %d}]}", i))
	}
	before := h.scanned(t)
	if events := w.next(0); len(events) != 0 || h.scanned(t) != before {
		t.Errorf("%d entries were read for nothing, %d events", h.scanned(t)-before, len(events))
	}
	h.ok(t, "test", "{insert: 'c', documents: [{_id: 1}]}")
	if events := w.next(0); len(events) != 1 || h.scanned(t) != before+1 {
		t.Errorf("%d entries were read for one, %d events", h.scanned(t)-before, len(events))
	}
}

// TestStreamEnds: what ends a cursor ends a stream that waits.
func TestStreamEnds(t *testing.T) {
	for name, c := range map[string]struct {
		end  func(h *harness, w *watching, stop chan struct{})
		code mongoerr.Code
	}{
		"killed": {func(h *harness, w *watching, _ chan struct{}) {
			h.must("1", "test", fmt.Sprintf("{killCursors: 'c', cursors: [NumberLong('%d')]}", w.id))
		}, mongoerr.CursorKilled},
		"stopped": {func(_ *harness, _ *watching, stop chan struct{}) { close(stop) }, mongoerr.InterruptedAtShutdown},
	} {
		t.Run(name, func(t *testing.T) {
			h := member(t)
			stop := make(chan struct{})
			h.server.Stopping = stop
			w := h.watch("test", "c", "", "")
			got := w.waiting()
			h.taken()
			c.end(h, w, stop)
			wantCode(t, <-got, c.code)
			if open, _, _, _ := h.server.Cursors.Counts(); open != 0 {
				t.Errorf("%d cursors are left open", open)
			}
		})
	}
	h := member(t)
	w := h.watch("test", "c", "", "")
	h.clock.Advance(time.Hour)
	if n := h.server.Cursors.Expire(10*time.Minute, h.server.Sessions.Lives); n != 1 {
		t.Errorf("%d cursors timed out", n)
	}
	if _, reply := w.try(0, 0); !mongoerr.Is(&mongoerr.Error{Code: mongoerr.Code(reply.Body.Lookup("code").Int32())}, mongoerr.CursorNotFound) {
		t.Error(reply.Body)
	}
	h.ok(t, "test", "{insert: 'c', documents: [{_id: 1}]}")
}

// TestManyIdleStreams: a thousand streams wait while one collection is busy. Nobody is woken by what is none of his business, and
// each by what is.
func TestManyIdleStreams(t *testing.T) {
	const streams = 1000
	h := member(t)
	var waits []<-chan Reply
	var all []*watching
	for i := range streams {
		h.ok(t, "test", fmt.Sprintf("{create: 'c%d'}", i))
		w, _, reply := h.tryWatch(NewConn(int64(100+i), "127.0.0.1:1", "127.0.0.1:2"), "test", fmt.Sprintf("c%d", i), "", "", nil)
		if w.id == 0 {
			t.Fatal(reply.Body)
		}
		all, waits = append(all, w), append(waits, w.waiting())
	}
	h.awaitStreams(streams)
	before := h.woken()
	scanned := h.scanned(t)
	for i := range 200 {
		h.ok(t, "test", fmt.Sprintf("{insert: 'busy', documents: [{_id: %d}]}", i))
	}
	if n := h.woken() - before; n != 0 {
		t.Errorf("%d were woken for nothing", n)
	}
	if n := h.scanned(t) - scanned; n != 0 {
		t.Errorf("%d entries were read for nothing", n)
	}
	for _, i := range []int{0, 17, streams - 1} {
		h.ok(t, "test", fmt.Sprintf("{insert: 'c%d', documents: [{_id: 5}]}", i))
		if ids := keys(all[i].took((<-waits[i]).Body, "nextBatch")); !slices.Equal(ids, []int32{5}) {
			t.Errorf("stream %d: %v", i, ids)
		}
	}
	if n := h.woken() - before; n != 3 {
		t.Errorf("%d were woken, not 3", n)
	}
	if n := h.server.Cursors.KillWhere(func(*cursor.Cursor) bool { return true }); n != streams {
		t.Errorf("%d streams were open", n)
	}
	for i, w := range waits {
		if i != 0 && i != 17 && i != streams-1 {
			wantCode(t, <-w, mongoerr.CursorKilled)
		}
	}
	if n, _ := h.server.Query.Store.LogWatches().Waits(); n != 0 {
		t.Errorf("%d are still waited for", n)
	}
}

// TestSummaries: what a sweep tells in sum wakes those who watch the collection, and is an event for those who ask for expanded events.
func TestSummaries(t *testing.T) {
	h := member(t)
	h.ok(t, "test", "{create: 'c'}")
	plain, expanded := h.watch("test", "c", "", ""), h.watch("test", "c", "showExpandedEvents: true", "")
	got := expanded.waiting()
	h.awaitStreams(1)
	err := h.server.Query.Store.Write(t.Context(), namespace.NS{DB: "test", Coll: "c"}, storage.WriteOptions{}, func(w *storage.Writer) error {
		w.Note(bson.MustDoc("{ebbExpired: {index: 'd', count: 5}}"))
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	events := expanded.took((<-got).Body, "nextBatch")
	if len(events) != 1 || events[0].Lookup("operationType").Str() != "ebbExpired" || events[0].Lookup("operationDescription").String() != "{ index: \"d\", count: 5 }" {
		t.Error(events)
	}
	if events := plain.next(0); len(events) != 0 {
		t.Error(events)
	}
	again, _, _ := h.tryWatch(plain.conn, "test", "c", "", "", expanded.last)
	h.ok(t, "test", "{insert: 'c', documents: [{_id: 1}]}")
	_, reply := again.try(0, 0)
	wantCode(t, reply, mongoerr.ChangeStreamFatalError) // it is no place of who does not ask for such events
	again, _, _ = h.tryWatch(plain.conn, "test", "c", "showExpandedEvents: true", "", expanded.last)
	if ids := keys(again.next(0)); !slices.Equal(ids, []int32{1}) {
		t.Error(ids)
	}
}

// TestStreamOfASession: a stream ends with the session that it was opened in, and nobody else may read it.
func TestStreamOfASession(t *testing.T) {
	for _, end := range []string{"{endSessions: [{id: UUID('00000000-0000-0000-0000-000000000001')}]}", "{killSessions: [{id: UUID('00000000-0000-0000-0000-000000000001')}]}"} {
		h := member(t)
		const session = ", lsid: {id: UUID('00000000-0000-0000-0000-000000000001')}}"
		reply := h.ok(t, "test", "{aggregate: 'c', pipeline: [{$changeStream: {}}], cursor: {}"+session)
		id := reply.Lookup("cursor").Doc().Lookup("id").Int64()
		more := fmt.Sprintf("{getMore: NumberLong('%d'), collection: 'c', maxTimeMS: 0", id)
		h.ok(t, "test", more+session)
		wantCode(t, h.send(t.Context(), "1", "test", bson.MustDoc(more+"}")), 50737)
		h.ok(t, "admin", end)
		wantCode(t, h.send(t.Context(), "1", "test", bson.MustDoc(more+session)), mongoerr.CursorNotFound)
		h.ok(t, "test", "{insert: 'c', documents: [{_id: 1}]}")
	}
}

// scanned is how many documents the server has looked at so far.
func (h *harness) scanned(t *testing.T) int64 {
	status := h.ok(t, "admin", "{serverStatus: 1}")
	return status.Lookup("metrics").Doc().Lookup("queryExecutor").Doc().Lookup("scannedObjects").Int64()
}

// TestStreamOfALargeTransaction: the events of a transaction that takes several entries of the oplog, and places within it.
func TestStreamOfALargeTransaction(t *testing.T) {
	const docs = 5
	h := member(t)
	h.ok(t, "test", "{create: 'c'}")
	w := h.watch("test", "c", "", ", {$project: {documentKey: 1}}")
	h.ok(t, "test", "{insert: 'other', documents: [{_id: 0}]}")
	long := strings.Repeat("x", 6<<20)
	for i := range docs {
		h.statement(t, "test", bson.Build().String("insert", "c").Array("documents").Object("0").Int32("_id", int32(i)).String("s", long).End().End(), i == 0)
	}
	h.statement(t, "admin", bson.Build().Int32("commitTransaction", 1), false)
	h.ok(t, "test", "{insert: 'c', documents: [{_id: 99}]}")
	var tokens []bson.Doc
	var got []int32
	for len(got) < docs+1 {
		events := w.next(1)
		if len(events) != 1 {
			t.Fatal(got)
		}
		got, tokens = append(got, keys(events)...), append(tokens, w.last)
	}
	want := []int32{0, 1, 2, 3, 4, 99}
	if !slices.Equal(got, want) {
		t.Fatal(got)
	}
	for i, token := range tokens {
		again, _, reply := h.tryWatch(w.conn, "test", "c", "", ", {$project: {documentKey: 1}}", token)
		if again.id == 0 {
			t.Fatal(reply.Body)
		}
		if ids := keys(again.next(0)); !slices.Equal(ids, want[i+1:]) {
			t.Errorf("behind %d: %v", want[i], ids)
		}
	}
}

// TestLargeEvents: an event that is larger than a document is an error, or comes in parts, behind each of which a stream goes on.
func TestLargeEvents(t *testing.T) {
	h := member(t)
	h.ok(t, "test", "{insert: 'c', documents: [{_id: 1}]}")
	whole := h.watch("test", "c", "fullDocument: 'updateLookup'", "")
	split := h.watch("test", "c", "fullDocument: 'updateLookup'", ", {$changeStreamSplitLargeEvent: {}}")
	start := split.mark
	update := bson.Build().String("update", "c").Array("updates").Object("0").Document("q", bson.MustDoc("{_id: 1}")).
		Object("u").Object("$set").String("s", strings.Repeat("x", 9<<20)).End().End().End().End().Doc()
	if reply := h.send(t.Context(), "1", "test", update); !reply.Body.Lookup("ok").Truthy() {
		t.Fatal(reply.Body)
	}
	h.ok(t, "test", "{delete: 'other', deletes: [{q: {}, limit: 0}]}")
	h.ok(t, "test", "{insert: 'c', documents: [{_id: 2}]}")
	_, reply := whole.try(0, 0)
	wantCode(t, reply, mongoerr.BSONObjectTooLarge)
	largeEvents := func() (failed, split int64) {
		told := h.ok(t, "test", "{serverStatus: 1}").Lookup("metrics").Doc().Lookup("changeStreams").Doc()
		return told.Lookup("largeEventsFailed").Int64(), told.Lookup("largeEventsSplit").Int64()
	}
	if failed, split := largeEvents(); failed != 1 || split != 0 {
		t.Errorf("serverStatus tells of %d large events that failed and %d that were split", failed, split)
	}
	var parts []string
	var tokens []bson.Doc
	for range 3 {
		for _, e := range split.next(1) {
			fields := ""
			for it := e.Iter(); it.Next(); {
				fields += it.Key() + " "
			}
			parts, tokens = append(parts, fields+strings.TrimPrefix(e.Lookup("splitEvent").String(), "missing")), append(tokens, split.last)
		}
	}
	// The document is as it is when the event is read, and as large as what has changed.
	want := []string{
		"_id splitEvent ns wallTime clusterTime documentKey operationType fullDocument { fragment: 1, of: 2 }",
		"_id splitEvent updateDescription { fragment: 2, of: 2 }",
		"_id operationType clusterTime wallTime fullDocument ns documentKey ",
	}
	if len(parts) != 3 {
		t.Fatal(parts)
	}
	for i := range want {
		if got := sorted(parts[i]); got != sorted(want[i]) {
			t.Errorf("part %d: %s, want %s", i, parts[i], want[i])
		}
	}
	for i := range tokens[:2] {
		again, _, reply := h.tryWatch(split.conn, "test", "c", "fullDocument: 'updateLookup'", ", {$changeStreamSplitLargeEvent: {}}", tokens[i])
		if again.id == 0 {
			t.Fatal(reply.Body)
		}
		if events := again.next(0); len(events) != 2-i || string(again.last) != string(tokens[2]) {
			t.Errorf("behind part %d there are %d events", i, len(events))
		}
		plain, _, _ := h.tryWatch(split.conn, "test", "c", "", "", tokens[i])
		if _, reply = plain.try(0, 0); reply.Body.Lookup("ok").Truthy() {
			t.Error("a stream that does not split goes on behind a part")
		} else {
			wantCode(t, reply, mongoerr.ChangeStreamFatalError)
		}
	}
	small, _, _ := h.tryWatch(split.conn, "test", "c", "", ", {$changeStreamSplitLargeEvent: {}}", tokens[0])
	_, reply = small.try(0, 0)
	wantCode(t, reply, mongoerr.ChangeStreamFatalError)
	if behind, _, _ := h.tryWatch(split.conn, "test", "c", "", "", start); len(behind.next(0)) != 2 {
		t.Error("events are missing")
	}
}

func sorted(s string) string {
	words := strings.Fields(s)
	slices.Sort(words)
	return strings.Join(words, " ")
}

// TestStreamOfDeepDocuments: events of documents that nest as deep as they may.
func TestStreamOfDeepDocuments(t *testing.T) {
	h := member(t)
	w := h.watch("test", "c", "fullDocument: 'updateLookup', showExpandedEvents: true", "")
	nest := func(leaf int, depth int) bson.Doc {
		d := bson.Build().Int32("x", int32(leaf)).String("text", "something that does not change").Doc()
		for range depth {
			d = bson.Build().Document("a", d).String("text", "something that does not change").Doc()
		}
		return d
	}
	id := nest(0, 90)
	for i, op := range []bson.Doc{
		bson.Build().String("insert", "c").Array("documents").Object("0").Document("_id", id).Document("v", nest(1, 90)).End().End().Doc(),
		bson.Build().String("update", "c").Array("updates").Object("0").Object("q").Document("_id", id).End().Array("u").Object("0").Object("$set").Document("v", nest(2, 90)).End().End().End().End().End().Doc(),
		bson.Build().String("delete", "c").Array("deletes").Object("0").Object("q").Document("_id", id).End().Int32("limit", 1).End().End().Doc(),
	} {
		if reply := h.send(t.Context(), "1", "test", op); !reply.Body.Lookup("ok").Truthy() || reply.Body.Lookup("n").Int32() != 1 {
			t.Fatal(i, reply.Body)
		}
	}
	var last bson.Doc
	for i, want := range []string{"create", "insert", "update", "delete"} {
		events := w.next(1)
		if len(events) != 1 || events[0].Lookup("operationType").Str() != want {
			t.Fatal(i, events)
		}
		if i > 1 {
			again, _, reply := h.tryWatch(w.conn, "test", "c", "", "", last)
			if again.id == 0 || len(again.next(0)) != 4-i {
				t.Errorf("behind %d: %s", i-1, reply.Body)
			}
		}
		last = w.last
	}
}

// TestHistoryLost: a stream cannot go on where the oplog does not reach back to.
func TestHistoryLost(t *testing.T) {
	h := newMember(t)
	store := h.server.Query.Store
	if err := store.CreateOplog(t.Context(), 1<<30); err != nil { // without the note that the set was initiated
		t.Fatal(err)
	}
	for i := range 3 {
		if err := store.LogNote(t.Context(), bson.Build().Int32("n", int32(i)).Doc()); err != nil {
			t.Fatal(err)
		}
	}
	read := func(spec string) error {
		call := &query.Call{Now: store.Now()}
		running, err := h.server.Query.Aggregate(t.Context(), query.Aggregate{NS: namespace.NS{DB: "test", Coll: "c"}, Pipeline: bson.MustDoc("{p: [{$changeStream: " + spec + "}]}").Lookup("p")}, call)
		if err != nil {
			return err
		}
		defer running.Close()
		_, err = running.Next(t.Context())
		return err
	}
	if err := read("{startAtOperationTime: Timestamp(5, 1)}"); !mongoerr.Is(err, mongoerr.ChangeStreamHistoryLost) {
		t.Error(err)
	}
	last := store.LastLogged()
	for _, at := range []uint32{last.Counter(), last.Counter() + 1, 1 << 30} {
		if err := read(fmt.Sprintf("{startAtOperationTime: Timestamp(%d, %d)}", last.Seconds(), at)); err != nil {
			t.Error(at, err)
		}
	}
	if err := read("{}"); err != nil {
		t.Error(err)
	}
}

// TestStreamsAmongWriters: while writers change several collections, with and without transactions, streams read in batches of random
// size, stop, and are resumed at any event or batch. Each sees each event once, in the order of all.
func TestStreamsAmongWriters(t *testing.T) {
	const writers, each, collections = 3, 60, 3
	h := member(t)
	h.ok(t, "test", "{create: 'x'}")
	rng := rand.New(rand.NewPCG(testseed.Of(t), 0))
	var streams []*watching
	for i := range collections {
		streams = append(streams, h.watch("test", fmt.Sprintf("c%d", i), "", ""))
		h.ok(t, "test", fmt.Sprintf("{create: 'c%d'}", i))
	}
	streams = append(streams, h.watch("test", "", "", ""), h.watch("test", "", "", ""))
	var writing, reading sync.WaitGroup
	for n := range writers {
		seed := rng.Uint64()
		writing.Go(func() { h.writeAtRandom(t, n, each, collections, rand.New(rand.NewPCG(seed, 1))) })
	}
	finished := make(chan struct{})
	seen := make([][]string, len(streams))
	for i, w := range streams {
		seed := rng.Uint64()
		w.conn = NewConn(int64(500+i), "127.0.0.1:1", "127.0.0.1:2")
		reading.Go(func() { seen[i] = w.readAtRandom(t, finished, rand.New(rand.NewPCG(seed, 2))) })
	}
	writing.Wait()
	close(finished)
	reading.Wait()
	all := seen[len(seen)-1]
	if len(all) < writers*each || !slices.Equal(all, seen[len(seen)-2]) {
		t.Errorf("the streams on the database saw %d and %d events", len(all), len(seen[len(seen)-2]))
	}
	for i := range collections {
		var own []string
		for _, e := range all {
			if strings.HasPrefix(e, fmt.Sprintf("c%d ", i)) {
				own = append(own, e)
			}
		}
		if !slices.Equal(own, seen[i]) {
			t.Errorf("the stream on c%d saw %d events, that on the database %d", i, len(seen[i]), len(own))
		}
	}
}

func (h *harness) writeAtRandom(t *testing.T, n, each, collections int, rng *rand.Rand) {
	c := NewConn(int64(300+n), "127.0.0.1:1", "127.0.0.1:2")
	txn := 0
	for i := range each {
		coll, id := fmt.Sprintf("c%d", rng.IntN(collections)), n*1000+i
		insert := fmt.Sprintf("{insert: '%s', documents: [{_id: %d}, {_id: %d}]}", coll, id, id+500)
		if rng.IntN(3) > 0 {
			if reply := h.sendOn(t.Context(), c, "test", bson.MustDoc(insert)); reply.Body.Lookup("n").Int32() != 2 {
				t.Errorf("%s", reply.Body)
			}
			continue
		}
		txn++
		session := fmt.Sprintf("lsid: {id: UUID('00000000-0000-0000-0000-%012d')}, txnNumber: NumberLong(%d), autocommit: false", n, txn)
		for _, text := range []string{
			strings.TrimSuffix(insert, "}") + ", startTransaction: true, " + session + "}",
			fmt.Sprintf("{update: '%s', updates: [{q: {_id: %d}, u: {$set: {a: 1}}}], %s}", coll, id, session),
			"{commitTransaction: 1, " + session + "}",
		} {
			db := "test"
			if strings.HasPrefix(text, "{commit") {
				db = "admin"
			}
			if reply := h.sendOn(t.Context(), c, db, bson.MustDoc(text)); !reply.Body.Lookup("ok").Truthy() {
				t.Errorf("%s: %s", text, reply.Body)
			}
		}
	}
}

// readAtRandom reads until nothing comes any more after the writers have finished.
func (w *watching) readAtRandom(t *testing.T, finished <-chan struct{}, rng *rand.Rand) (seen []string) {
	for {
		over := false
		select {
		case <-finished:
			over = true
		default:
		}
		events, reply := w.try(rng.IntN(5), 0)
		if !reply.Body.Lookup("ok").Truthy() {
			t.Errorf("%s", reply.Body)
			return seen
		}
		keep := len(events)
		if keep > 0 && rng.IntN(4) == 0 { // go on in the middle of the batch
			keep = 1 + rng.IntN(keep)
		}
		for _, e := range events[:keep] {
			seen = append(seen, fmt.Sprint(e.Lookup("ns").Doc().Lookup("coll").Str(), " ", e.Lookup("operationType").Str(), " ", e.Lookup("documentKey"), " ", e.Lookup("clusterTime")))
		}
		switch {
		case keep < len(events):
			w.resume(t, events[keep-1].Lookup("_id").Doc())
		case rng.IntN(4) == 0:
			w.resume(t, w.mark)
		case len(events) == 0 && over:
			return seen
		}
		if len(events) == 0 {
			runtime.Gosched()
		}
	}
}

func (w *watching) resume(t *testing.T, at bson.Doc) {
	coll := w.coll
	if coll == "$cmd.aggregate" {
		coll = ""
	}
	again, _, reply := w.h.tryWatch(w.conn, w.db, coll, "", "", at)
	if again.id == 0 {
		t.Errorf("%s", reply.Body)
		return
	}
	w.h.server.Cursors.Kill(w.id)
	w.id = again.id
}
