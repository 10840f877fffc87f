package command

import (
	"bytes"
	"fmt"
	"testing"
	"time"

	"github.com/ebbdb/ebb/internal/bson"
)

// TestReapHistories: what a session did is forgotten when it has been over for half an hour, and not before.
func TestReapHistories(t *testing.T) {
	h := member(t)
	write := func(session byte, number int64) bson.Doc {
		t.Helper()
		b := bson.Build().Fields(bson.MustDoc(fmt.Sprintf("{insert: 'c', documents: [{_id: %d}]}", 100*int(session)+int(number))))
		b.Object("lsid").Binary("id", 4, bytes.Repeat([]byte{session}, 16)).End().Int64("txnNumber", number)
		return h.send(t.Context(), "1", "test", b.Doc()).Body
	}
	want := func(sessions string) {
		t.Helper()
		if err := h.server.reap(t.Context()); err != nil {
			t.Fatal(err)
		}
		found := h.ok(t, "config", "{distinct: 'transactions', key: 'txnNum'}").Lookup("values").Text()
		if found != sessions {
			t.Errorf("%s, want %s", found, sessions)
		}
	}
	write(1, 1)
	write(2, 2)
	want("[ NumberLong(1), NumberLong(2) ]")
	h.clock.Advance(29 * time.Minute)
	h.ok(t, "test", "{ping: 1, lsid: {id: UUID('02020202-0202-0202-0202-020202020202')}}") // used, and not written with
	h.clock.Advance(2 * time.Minute)
	h.server.endIdle()
	want("[ NumberLong(2) ]")
	if reply := write(2, 2); reply.Lookup("retriedStmtIds").IsMissing() {
		t.Error(reply)
	}
	if reply := write(1, 1); reply.Lookup("n").TruncInt64() != 0 { // done again, as nobody knows of it: the document is there
		t.Error(reply)
	}
	write(1, 3)
	want("[ NumberLong(2), NumberLong(3) ]")
	h.clock.Advance(31 * time.Minute)
	h.server.endIdle()
	want("[]")
	h.ok(t, "config", "{validate: 'transactions'}")
}
