package command

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"runtime"
	"strings"
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

// TestRunningStatements: currentOp shows which transaction a statement is of, and the number of a retryable write.
func TestRunningStatements(t *testing.T) {
	for fields, want := range map[string]string{
		"txnNumber: NumberLong(3), autocommit: false, startTransaction: true, readConcern: {level: 'majority'}": `{ parameters: { txnNumber: 3, txnRetryCounter: 0, ` +
			`autocommit: false, readConcern: { level: "majority", provenance: "clientSupplied" } }, readTimestamp: Timestamp(0, 0), ` +
			`startWallClockTime: "2026-01-02T03:04:05.000+00:00", timeOpenMicros: 2000000, timeActiveMicros: 2000000, timeInactiveMicros: 0, ` +
			`expiryTime: "2026-01-02T03:05:05.000+00:00" }`,
		"txnNumber: NumberLong(3)": "{ parameters: { txnNumber: 3 } }",
	} {
		h := member(t)
		h.ok(t, "test", "{create: 'c'}")
		h.ok(t, "admin", "{fsync: 1, lock: true}")
		done := h.start("2", "test", "{insert: 'c', documents: [{_id: 1}], lsid: {id: BinData(4, 'AQEBAQEBAQEBAQEBAQEBAQ==')}, "+fields+"}")
		for h.ok(t, "admin", "{currentOp: 1, waitingForLock: true}").Lookup("inprog").Doc().Count() == 0 {
			runtime.Gosched()
		}
		h.clock.Advance(2 * time.Second)
		row := h.ok(t, "admin", "{currentOp: 1, waitingForLock: true}").Lookup("inprog").Doc().Index(0).Doc()
		if got := row.Lookup("transaction").Doc().String(); got != want || row.Lookup("type").Str() != "op" {
			t.Errorf("%s: %s", fields, row)
		}
		if s := h.ok(t, "test", "{serverStatus: 1}").Lookup("transactions").Doc(); s.Lookup("currentActive").Int64() != s.Lookup("totalStarted").Int64() {
			t.Error(s)
		}
		h.ok(t, "admin", "{fsyncUnlock: 1}")
		if r := <-done; !r.Body.Lookup("ok").Truthy() {
			t.Error(r.Body)
		}
	}
}

// TestSlowTransaction: a transaction that was open for long has its line in the log, with what its statements did together.
func TestSlowTransaction(t *testing.T) {
	h := member(t)
	h.ok(t, "test", "{insert: 'c', documents: [{_id: 1}, {_id: 2}]}")
	lines := h.logged()
	run := func(db string, number int, text, fields string) {
		h.ok(t, db, fmt.Sprintf("%s, lsid: {id: BinData(4, 'AQEBAQEBAQEBAQEBAQEBAQ==')}, txnNumber: NumberLong(%d), autocommit: false%s}", strings.TrimSuffix(text, "}"), number, fields))
	}
	for number, end := range []string{"commitTransaction", "abortTransaction", "commitTransaction"} {
		run("test", number, "{find: 'c'}", ", startTransaction: true, readConcern: {level: 'snapshot'}")
		run("test", number, "{update: 'c', updates: [{q: {_id: 1}, u: {$inc: {n: 1}}}]}", "")
		if number < 2 {
			h.clock.Advance(101 * time.Millisecond)
		}
		run("admin", number, "{"+end+": 1}", "")
	}
	const line = `{"level":"INFO","msg":"transaction","parameters":{"lsid":{"id":{"$binary":{"base64":"AQEBAQEBAQEBAQEBAQEBAQ==","subType":"04"}},` +
		`"uid":{"$binary":{"base64":"47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU=","subType":"00"}}},"txnNumber":%d,"autocommit":false,` +
		`"readConcern":{"level":"snapshot"}},"readTimestamp":"Timestamp(0, 0)","keysExamined":1,"docsExamined":3,"nMatched":1,"nModified":1,` +
		`"terminationCause":"%s","timeActiveMicros":0,"timeInactiveMicros":101000,"numYields":0,"wasPrepared":false,"durationMillis":101}` + "\n"
	if want := fmt.Sprintf(line+line, 0, "committed", 1, "aborted"); lines.String() != want {
		t.Errorf("got\n%s\nwant\n%s", lines, want)
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

// TestNoWritesPerformed: the error of a retryable write that has done nothing says so, but for that of a connection's first write.
func TestNoWritesPerformed(t *testing.T) {
	h := newTested(t)
	h.ok(t, "admin", "{replSetInitiate: 1}")
	h.ok(t, "test", "{insert: 'c', documents: [{_id: 1}, {_id: 2}]}")
	for i, c := range []struct{ conn, mode, write, want string }{
		{"2", "{times: 1}", "{insert: 'c', documents: [{_id: 3}]}", `[ "RetryableWriteError" ]`},
		{"2", "{times: 1}", "{insert: 'c', documents: [{_id: 3}]}", `[ "RetryableWriteError", "NoWritesPerformed" ]`},
		{"2", "{times: 1}", "{findAndModify: 'c', query: {_id: 1}, remove: true}", `[ "RetryableWriteError", "NoWritesPerformed" ]`},
		{"2", "{skip: 1}", "{update: 'c', updates: [{q: {_id: 1}, u: {$set: {a: 1}}}, {q: {_id: 2}, u: {$set: {a: 1}}}]}", `[ "RetryableWriteError" ]`},
		{"2", "{skip: 1}", "{delete: 'c', deletes: [{q: {_id: 1}, limit: 1}, {q: {_id: 2}, limit: 1}], writeConcern: {j: false}}", `[ "RetryableWriteError" ]`},
	} {
		h.ok(t, "admin", "{configureFailPoint: 'onPrimaryTransactionalWrite', mode: "+c.mode+", data: {failBeforeCommitExceptionCode: 11600, closeConnection: false}}")
		r := h.send(t.Context(), c.conn, "test", bson.Build().Fields(bson.MustDoc(c.write)).Object("lsid").Binary("id", 4, bytes.Repeat([]byte{1}, 16)).End().Int64("txnNumber", int64(i)).Doc())
		if got := r.Body.Lookup("errorLabels"); got.Text() != c.want {
			t.Errorf("%d: %s: %s, want %s", i, c.write, r.Body, c.want)
		}
		h.ok(t, "admin", "{configureFailPoint: 'onPrimaryTransactionalWrite', mode: 'off'}")
	}
}
