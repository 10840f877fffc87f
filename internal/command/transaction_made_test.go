package command

import (
	"runtime"
	"strings"
	"testing"

	"github.com/ebbdb/ebb/internal/bson"
)

// txn is a statement of transaction n of a session, or its end.
func (h *harness) txn(t *testing.T, db, text string, n int64, starts bool) bson.Doc {
	t.Helper()
	return h.txnDoc(t, db, bson.MustDoc(text), n, starts)
}

func (h *harness) txnDoc(t *testing.T, db string, command bson.Doc, n int64, starts bool) bson.Doc {
	t.Helper()
	b := bson.Build().Fields(command).Object("lsid").Binary("id", 4, make([]byte, 16)).End().Int64("txnNumber", n).Bool("autocommit", false)
	if starts {
		b.Bool("startTransaction", true)
	}
	return h.send(t.Context(), "3", db, b.Doc()).Body
}

// TestMadeTTLsAreNoted: the history of TTLs has those that a transaction has made when it commits, and not before, nor when it does not.
func TestMadeTTLsAreNoted(t *testing.T) {
	h := member(t)
	history := func() (out []string) {
		for it := h.ok(t, "local", "{find: 'ttl_history', sort: {at: 1}}").Lookup("cursor").Doc().Lookup("firstBatch").Doc().Iter(); it.Next(); {
			d := it.Value().Doc()
			out = append(out, strings.Join([]string{d.Lookup("event").Str(), d.Lookup("ns").Str(), d.Lookup("new").String(), d.Lookup("wouldExpire").String(),
				d.Lookup("by").Doc().Lookup("command").Str()}, " "))
		}
		return out
	}
	for n, end := range []string{"{abortTransaction: 1}", "{commitTransaction: 1}"} {
		h.txn(t, "test", "{createIndexes: 'made', indexes: [{key: {d: 1}, name: 'd', expireAfterSeconds: 60}]}", int64(n), true)
		h.txn(t, "test", "{insert: 'made', documents: [{_id: 1, d: new Date(0)}]}", int64(n), false)
		h.txn(t, "test", "{create: 'k', clusteredIndex: {key: {_id: 1}, unique: true}, expireAfterSeconds: 10}", int64(n), false)
		if got := history(); got != nil {
			t.Errorf("before the end the history has %q", got)
		}
		if reply := h.txn(t, "admin", end, int64(n), false); !reply.Lookup("ok").Truthy() {
			t.Fatal(reply)
		}
	}
	want := "created test.made 60 1 commitTransaction, created test.k 10 0 commitTransaction"
	if got := strings.Join(history(), ", "); got != want {
		t.Errorf("\n got %s\nwant %s", got, want)
	}
}

// TestMadeIsForgotten: no plans and no counts are kept of what a transaction has made and not committed.
func TestMadeIsForgotten(t *testing.T) {
	for name, end := range map[string]func(h *harness) bson.Doc{
		"abort": func(h *harness) bson.Doc { return h.txn(t, "admin", "{abortTransaction: 1}", 1, false) },
		"conflict": func(h *harness) bson.Doc {
			h.ok(t, "test", "{create: 'made'}")
			return h.txn(t, "admin", "{commitTransaction: 1}", 1, false)
		},
	} {
		t.Run(name, func(t *testing.T) {
			h := member(t)
			id := h.server.Query.Store.Catalog().All()[0].ID
			for _, c := range h.server.Query.Store.Catalog().All() {
				id = max(id, c.ID)
			}
			h.txn(t, "test", "{createIndexes: 'made', indexes: [{key: {a: 1}, name: 'a'}, {key: {b: 1}, name: 'b'}]}", 1, true)
			h.txn(t, "test", "{insert: 'made', documents: [{_id: 1, a: 1, b: 1}, {_id: 2, a: 1, b: 2}]}", 1, false)
			if reply := h.txn(t, "test", "{find: 'made', filter: {a: 1, b: 1}}", 1, false); reply.Lookup("cursor").Doc().Lookup("firstBatch").Doc().Count() != 1 {
				t.Fatal(reply)
			}
			plans := h.server.Query.Plans.Of(id + 1)
			if len(plans.Entries()) == 0 {
				t.Fatal("no plan was remembered")
			}
			end(h)
			if h.server.Query.Plans.Of(id+1) == plans {
				t.Error("its plans are still there")
			}
		})
	}
}

// TestCommitWaitsForUnlock: while writes are locked out no transaction is committed.
func TestCommitWaitsForUnlock(t *testing.T) {
	h := member(t)
	h.txn(t, "test", "{insert: 'c', documents: [{_id: 1}]}", 1, true)
	h.ok(t, "admin", "{fsync: 1, lock: true}")
	h.conn("3")
	done := make(chan bson.Doc, 1)
	go func() { done <- h.txn(t, "admin", "{commitTransaction: 1}", 1, false) }()
	for looks := 0; h.ok(t, "admin", "{currentOp: 1, waitingForLock: true}").Lookup("inprog").Doc().IsEmpty(); looks++ {
		select {
		case reply := <-done:
			t.Fatal("it was committed: ", reply)
		default:
			runtime.Gosched()
		}
		if looks > 1e6 {
			t.Fatal("nobody waits")
		}
	}
	h.ok(t, "admin", "{fsyncUnlock: 1}")
	if reply := <-done; !reply.Lookup("ok").Truthy() {
		t.Error(reply)
	}
	if n := h.ok(t, "test", "{count: 'c'}").Lookup("n").Int32(); n != 1 {
		t.Errorf("there are %d documents", n)
	}
}

// TestCursorOnWhatIsMade: a cursor on a collection that a transaction has made goes on in it, also when more is made.
func TestCursorOnWhatIsMade(t *testing.T) {
	h := member(t)
	h.txn(t, "test", "{insert: 'made', documents: [{_id: 1}, {_id: 2}, {_id: 3}]}", 1, true)
	id, docs := cursorOf(h.txn(t, "test", "{find: 'made', batchSize: 1}", 1, false), "firstBatch")
	if id == 0 || docs != 1 {
		t.Fatal("there is no cursor")
	}
	h.txn(t, "test", "{insert: 'more', documents: [{_id: 1}]}", 1, false)
	h.txn(t, "test", "{insert: 'made', documents: [{_id: 4}]}", 1, false)
	more := bson.Build().Int64("getMore", id).String("collection", "made").Doc().String()
	if reply := h.txn(t, "test", more, 1, false); reply.Lookup("cursor").Doc().Lookup("nextBatch").Doc().Count() < 2 {
		t.Error(reply)
	}
	if reply := h.txn(t, "admin", "{abortTransaction: 1}", 1, false); !reply.Lookup("ok").Truthy() {
		t.Fatal(reply)
	}
	if reply := h.send(t.Context(), "3", "test", bson.MustDoc(more)).Body; reply.Lookup("code").Int32() != 43 {
		t.Error(reply)
	}
}
