package command

import (
	"bytes"
	"context"
	"errors"
	"testing"
	"time"

	"github.com/ebbdb/ebb/internal/bson"
	"github.com/ebbdb/ebb/internal/mongoerr"
)

// TestStatementEnds: whatever ends a statement of a transaction ends the transaction, and nothing of that remains.
func TestStatementEnds(t *testing.T) {
	gone := mongoerr.New(mongoerr.ClientDisconnect, "the client is gone")
	for name, c := range map[string]struct {
		end  func(*harness, bson.Doc, context.CancelCauseFunc) // is given the statement's row of currentOp
		want mongoerr.Code
	}{
		"killOp": {func(h *harness, row bson.Doc, _ context.CancelCauseFunc) {
			h.send(context.Background(), "1", "admin", bson.Build().Int32("killOp", 1).Value("op", row.Lookup("opid")).Doc())
		}, mongoerr.Interrupted},
		"killSessions": {func(h *harness, row bson.Doc, _ context.CancelCauseFunc) {
			id := bson.Build().Value("id", row.Lookup("lsid").Doc().Lookup("id")).Doc()
			h.send(context.Background(), "1", "admin", bson.Build().Value("killSessions", bson.ArrayOf(id.Value())).Doc())
		}, mongoerr.Interrupted},
		"maxTimeMS":        {func(h *harness, _ bson.Doc, _ context.CancelCauseFunc) { h.clock.Advance(5 * time.Second) }, mongoerr.MaxTimeMSExpired},
		"a client is gone": {func(_ *harness, _ bson.Doc, hangUp context.CancelCauseFunc) { hangUp(gone) }, mongoerr.ClientDisconnect},
		"its lifetime": {func(h *harness, _ bson.Doc, _ context.CancelCauseFunc) {
			h.server.Sessions.AbortOld(h.clock.Now().Add(time.Hour), h.server.stopper(mongoerr.New(mongoerr.TransactionExceededLifetimeLimitSeconds, "")))
		}, mongoerr.TransactionExceededLifetimeLimitSeconds},
		"a step-down": {func(h *harness, _ bson.Doc, _ context.CancelCauseFunc) {
			h.send(context.Background(), "1", "admin", bson.MustDoc("{replSetStepDown: 60, force: true}"))
		}, mongoerr.InterruptedDueToReplStateChange},
	} {
		t.Run(name, func(t *testing.T) {
			h := member(t)
			h.ok(t, "test", "{create: 'c'}")
			statement := func(ctx context.Context, fields string, start bool) bson.Doc {
				b := bson.Build().Fields(bson.MustDoc(fields)).Object("lsid").Binary("id", 4, bytes.Repeat([]byte{1}, 16)).End().Int64("txnNumber", 1).Bool("autocommit", false)
				if start {
					b.Bool("startTransaction", true)
				}
				return h.send(ctx, "2", "test", b.Doc()).Body
			}
			if r := statement(t.Context(), "{insert: 'c', documents: [{_id: 1}]}", true); !r.Lookup("ok").Truthy() {
				t.Fatal(r)
			}
			h.ok(t, "admin", "{fsync: 1, lock: true}") // which holds writes up
			h.conn("2")
			ctx, hangUp := context.WithCancelCause(context.Background())
			done := make(chan bson.Doc, 1)
			go func() { done <- statement(ctx, "{insert: 'c', documents: [{_id: 2}], maxTimeMS: 5000}", false) }()
			var row bson.Doc
			for row == nil {
				rows := h.ok(t, "admin", "{currentOp: 1, waitingForLock: true}").Lookup("inprog").Doc()
				if rows.Count() > 0 {
					row = rows.Index(0).Doc().Clone()
				}
			}
			c.end(h, row, hangUp)
			if r := <-done; r.Lookup("code").Int32() != int32(c.want) {
				t.Error(r)
			}
			hangUp(errors.New("over"))
			h.ok(t, "admin", "{fsyncUnlock: 1}")
			if open := h.server.Sessions.Open(); len(open) != 0 {
				t.Error(open)
			}
			if name == "a step-down" {
				return
			}
			if r := statement(t.Context(), "{find: 'c'}", false); r.Lookup("code").Int32() != int32(mongoerr.NoSuchTransaction) {
				t.Error(r)
			}
			if n := h.ok(t, "test", "{count: 'c'}").Lookup("n").Int32(); n != 0 {
				t.Errorf("%d documents", n)
			}
		})
	}
}

// TestFailTransactionalWrite: onPrimaryTransactionalWrite has a retryable write lose its connection, before or after its commit.
func TestFailTransactionalWrite(t *testing.T) {
	h := newTested(t)
	h.ok(t, "admin", "{replSetInitiate: 1}")
	send := func(number int64, text string) Reply {
		return h.send(t.Context(), "1", "test", bson.Build().Fields(bson.MustDoc(text)).Object("lsid").Binary("id", 4, bytes.Repeat([]byte{1}, 16)).End().Int64("txnNumber", number).Doc())
	}
	for i, c := range []struct {
		data, write string
		closes      bool
		after       int32
	}{
		{"{}", "{insert: 'c', documents: [{_id: 1}]}", true, 1},
		{"{failBeforeCommitExceptionCode: 1}", "{insert: 'c', documents: [{_id: 2}]}", true, 1},
		{"{failBeforeCommitExceptionCode: 1, closeConnection: false}", "{insert: 'c', documents: [{_id: 2}]}", false, 1},
		{"{failBeforeCommitExceptionCode: 1}", "{delete: 'c', deletes: [{q: {_id: 1}, limit: 1}]}", true, 1},
		{"{failBeforeCommitExceptionCode: 1}", "{findAndModify: 'c', query: {_id: 1}, remove: true}", true, 1},
		{"{}", "{delete: 'c', deletes: [{q: {_id: 1}, limit: 1}]}", true, 0},
	} {
		h.ok(t, "admin", "{configureFailPoint: 'onPrimaryTransactionalWrite', mode: {times: 1}, data: "+c.data+"}")
		r := send(int64(i), c.write)
		if (r.Body == nil) != c.closes || !c.closes && r.Body.Lookup("code").Int32() != 1 {
			t.Errorf("%s: %s: %s", c.data, c.write, r.Body)
		}
		if n := h.ok(t, "test", "{count: 'c'}").Lookup("n").Int32(); n != c.after {
			t.Errorf("%s: %s: %d documents", c.data, c.write, n)
		}
		if r := send(int64(i), c.write); r.Body == nil || !r.Body.Lookup("ok").Truthy() {
			t.Errorf("%s again: %s", c.write, r.Body)
		}
		if i > 0 { // what the second time has done
			h.ok(t, "test", "{delete: 'c', deletes: [{q: {}, limit: 0}]}")
			h.ok(t, "test", "{insert: 'c', documents: [{_id: 1}]}")
		}
	}
}
