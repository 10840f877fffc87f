package command

import (
	"bytes"
	"fmt"
	"testing"

	"github.com/ebbdb/ebb/internal/bson"
	"github.com/ebbdb/ebb/internal/mongoerr"
)

// member is a primary of a replica set of one.
func member(t *testing.T) *harness {
	h := newMember(t)
	h.ok(t, "admin", "{replSetInitiate: 1}")
	return h
}

// ok is the reply of a command that must not fail.
func (h *harness) ok(t *testing.T, db, text string) bson.Doc {
	t.Helper()
	reply := h.send(t.Context(), "1", db, bson.MustDoc(text)).Body
	if !reply.Lookup("ok").Truthy() {
		t.Fatalf("%s: %s", text, reply)
	}
	return reply
}

// statement runs a statement of transaction 1 of a session, which must not fail.
func (h *harness) statement(t *testing.T, db string, b *bson.Builder, starts bool) {
	t.Helper()
	b.Object("lsid").Binary("id", 4, make([]byte, 16)).End().Int64("txnNumber", 1).Bool("autocommit", false)
	if starts {
		b.Bool("startTransaction", true)
	}
	if reply := h.send(t.Context(), "1", db, b.Doc()).Body; !reply.Lookup("ok").Truthy() {
		t.Fatal(reply)
	}
}

func cursorOf(reply bson.Doc, batch string) (id int64, docs int) {
	c := reply.Lookup("cursor").Doc()
	return c.Lookup("id").Int64(), c.Lookup(batch).Doc().Count()
}

// TestCursorInTransaction: a cursor that a transaction opens sees what the transaction sees, is nobody else's, and ends with it.
func TestCursorInTransaction(t *testing.T) {
	h := member(t)
	h.ok(t, "test", "{insert: 'c', documents: [{_id: 1}, {_id: 2}, {_id: 3}]}")
	run := func(db, text string, starts bool) bson.Doc {
		t.Helper()
		b := bson.Build().Fields(bson.MustDoc(text)).Object("lsid").Binary("id", 4, bytes.Repeat([]byte{7}, 16)).End().Int64("txnNumber", 1).Bool("autocommit", false)
		if starts {
			b.Bool("startTransaction", true)
		}
		return h.send(t.Context(), "1", db, b.Doc()).Body
	}
	more := func(id int64) string {
		return bson.Build().Int64("getMore", id).String("collection", "c").Int32("batchSize", 1).Doc().String()
	}
	first := run("test", "{find: 'c', batchSize: 1}", true)
	id, n := cursorOf(first, "firstBatch")
	if id == 0 || n != 1 {
		t.Fatal(first)
	}
	h.ok(t, "test", "{delete: 'c', deletes: [{q: {_id: 2}, limit: 1}]}") // by somebody else, after it began
	if reply := run("test", more(id), false); reply.Lookup("cursor").Doc().Lookup("nextBatch").Doc().Index(0).Doc().Lookup("_id").Int32() != 2 {
		t.Fatal(reply)
	}
	alone := bson.Build().Int64("getMore", id).String("collection", "c").Object("lsid").Binary("id", 4, bytes.Repeat([]byte{7}, 16)).End().Doc()
	if reply := h.send(t.Context(), "1", "test", alone).Body; reply.Lookup("code").Int32() != 50740 {
		t.Fatal(reply)
	}
	if reply := run("admin", "{commitTransaction: 1}", false); !reply.Lookup("ok").Truthy() {
		t.Fatal(reply)
	}
	if reply := h.send(t.Context(), "1", "test", alone).Body; reply.Lookup("codeName").Str() != "CursorNotFound" {
		t.Fatal(reply)
	}
}

// TestCursorElsewhere: a cursor goes on in the session and the transaction that it was opened in, and nowhere else.
func TestCursorElsewhere(t *testing.T) {
	h := member(t)
	h.ok(t, "test", "{insert: 'c', documents: [{_id: 1}, {_id: 2}, {_id: 3}]}")
	const session, other = ", lsid: {id: UUID('00000000-0000-0000-0000-000000000001')}", ", lsid: {id: UUID('00000000-0000-0000-0000-000000000002')}"
	txn := func(n int) string {
		return fmt.Sprintf(", txnNumber: NumberLong(%d), autocommit: false, startTransaction: true", n)
	}
	for _, c := range []struct {
		opened, goesOn string
		code           int32
	}{
		{"", session, 50736},
		{session, "", 50737},
		{session, other, 50738},
		{session, session + txn(1), 50739},
		{session + txn(2), session, 50740},
		{session + txn(3), session + txn(4), int32(mongoerr.CursorNotFound)}, // the first transaction has ended, and its cursors
	} {
		id, _ := cursorOf(h.ok(t, "test", "{find: 'c', batchSize: 1"+c.opened+"}"), "firstBatch")
		reply := h.send(t.Context(), "1", "test", bson.MustDoc(fmt.Sprintf("{getMore: NumberLong('%d'), collection: 'c'%s}", id, c.goesOn))).Body
		if code := reply.Lookup("code").Int32(); code != c.code {
			t.Errorf("opened with %q, goes on with %q: %s", c.opened, c.goesOn, reply)
		}
	}
}

// TestTailOplog: a tailable cursor on the oplog goes on with the entries of later commits.
func TestTailOplog(t *testing.T) {
	h := member(t)
	reply := h.ok(t, "local", "{find: 'oplog.rs', tailable: true, awaitData: true, filter: {ns: 'test.c'}}")
	id, n := cursorOf(reply, "firstBatch")
	if id == 0 || n != 0 {
		t.Fatal(reply)
	}
	h.ok(t, "test", "{insert: 'c', documents: [{_id: 1}]}")
	h.ok(t, "test", "{update: 'c', updates: [{q: {_id: 1}, u: {$set: {a: 1}}}]}")
	more := h.ok(t, "local", bson.Build().Int64("getMore", id).String("collection", "oplog.rs").Doc().String())
	if _, n := cursorOf(more, "nextBatch"); n != 2 {
		t.Fatal(more)
	}
}

// TestTailOplogFrom: a reader that follows the oplog from a time on looks at one entry before that, at which it waits for what is not there yet.
func TestTailOplogFrom(t *testing.T) {
	h := member(t)
	h.ok(t, "test", "{insert: 'c', documents: [{_id: 1}]}")
	h.ok(t, "test", "{insert: 'c', documents: [{_id: 2}]}")
	var last, next bson.Value
	for _, seen := range []int{1, 0} { // from the last entry on, and from the next
		last = h.ok(t, "test", "{hello: 1}").Lookup("operationTime")
		seconds, counter := last.Timestamp()
		next = bson.Timestamp(seconds, counter+1)
		from := last
		if seen == 0 {
			from = next
		}
		filter := bson.Build().Object("ts").Value("$gte", from).End().Doc()
		id, docs := cursorOf(h.ok(t, "local", fmt.Sprintf("{find: 'oplog.rs', filter: %s, tailable: true}", filter)), "firstBatch")
		if id == 0 || docs != seen {
			t.Errorf("%s: cursor %d, %d entries", filter, id, docs)
		}
		h.ok(t, "test", "{insert: 'c', documents: [{}]}")
		if _, docs := cursorOf(h.ok(t, "local", fmt.Sprintf("{getMore: NumberLong('%d'), collection: 'oplog.rs'}", id)), "nextBatch"); docs != 1 {
			t.Errorf("%s: then %d entries", filter, docs)
		}
	}
	find := bson.Build().Object("explain").String("find", "oplog.rs").Object("filter").Object("ts").Value("$gte", next).End().End().End().Doc()
	stats := h.ok(t, "local", find.String()).Lookup("executionStats").Doc()
	if n := stats.Lookup("totalDocsExamined").Int32(); n != 1 {
		t.Errorf("%d entries examined", n)
	}
}

// TestCursorOfASnapshot: drivers send the read concern of a snapshot session with each getMore. The cursor goes on in the state that it was
// opened in, whatever it says.
func TestCursorOfASnapshot(t *testing.T) {
	h := member(t)
	h.ok(t, "test", "{insert: 'c', documents: [{_id: 1}, {_id: 2}, {_id: 3}]}")
	found := h.ok(t, "test", "{find: 'c', batchSize: 1, readConcern: {level: 'snapshot'}}").Lookup("cursor").Doc()
	h.ok(t, "test", "{delete: 'c', deletes: [{q: {}, limit: 0}]}")
	at, id := found.Lookup("atClusterTime"), found.Lookup("id").Int64()
	for i, concern := range []bson.Doc{
		bson.Build().String("level", "snapshot").Value("atClusterTime", at).Doc(),
		bson.MustDoc("{level: 'snapshot'}"),
	} {
		more := bson.Build().Int64("getMore", id).String("collection", "c").Int32("batchSize", 1).Document("readConcern", concern).Doc()
		next := h.ok(t, "test", more.String()).Lookup("cursor").Doc()
		if got, want := next.Lookup("nextBatch").String(), fmt.Sprintf("[ { _id: %d } ]", i+2); got != want {
			t.Errorf("%s: %s, want %s", concern, got, want)
		}
	}
}

// TestCursorsEndWithTheirTransaction: those that a transaction has opened end with it, and others do not.
func TestCursorsEndWithTheirTransaction(t *testing.T) {
	h := member(t)
	h.ok(t, "test", "{insert: 'c', documents: [{_id: 1}, {_id: 2}]}")
	h.ok(t, "test", "{find: 'c', batchSize: 1}")
	for i, end := range []string{"{commitTransaction: 1}", "{abortTransaction: 1}"} {
		for j, opening := range []string{"{find: 'c', batchSize: 1}", "{aggregate: 'c', pipeline: [], cursor: {batchSize: 0}}"} {
			h.txn(t, "test", opening, int64(2*i+j), true)
			if open, _, _, _ := h.server.Cursors.Counts(); open != 2 {
				t.Errorf("%s: %d cursors are open", opening, open)
			}
			h.txn(t, "admin", end, int64(2*i+j), false)
			if open, _, _, _ := h.server.Cursors.Counts(); open != 1 {
				t.Errorf("behind %s %d cursors are open", end, open)
			}
		}
	}
}

// TestCursorOfBulkWriteInTransaction: the cursor of a bulkWrite is in the database admin, and goes on in the transaction that it was opened in.
func TestCursorOfBulkWriteInTransaction(t *testing.T) {
	h := member(t)
	const transaction = ", lsid: {id: UUID('11111111-1111-4111-8111-111111111111')}, txnNumber: NumberLong(1), autocommit: false"
	bulk := "{bulkWrite: 1, ops: [{insert: 0, document: {_id: 1}}, {insert: 0, document: {_id: 2}}, {insert: 0, document: {_id: 3}}], nsInfo: [{ns: 'test.c'}], cursor: {batchSize: 1}"
	id := at(h.ok(t, "admin", bulk+transaction+", startTransaction: true}").Value(), "cursor.id").Int64()
	next := h.ok(t, "admin", fmt.Sprintf("{getMore: NumberLong(%d), collection: '$cmd.bulkWrite', batchSize: 1"+transaction+"}", id))
	if got := at(next.Value(), "cursor.nextBatch.0.idx"); got.Int32() != 1 {
		t.Error(next.Text())
	}
	killed := h.ok(t, "admin", fmt.Sprintf("{killCursors: '$cmd.bulkWrite', cursors: [NumberLong(%d)]"+transaction+"}", id))
	if at(killed.Value(), "cursorsKilled.0").Int64() != id {
		t.Error(killed.Text())
	}
	h.ok(t, "admin", "{commitTransaction: 1"+transaction+"}")
}
