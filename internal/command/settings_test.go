package command

import (
	"testing"
	"time"

	"github.com/ebbdb/ebb/internal/bson"
	"github.com/ebbdb/ebb/internal/cursor"
	"github.com/ebbdb/ebb/internal/operation"
	"github.com/ebbdb/ebb/internal/session"
)

func TestIdleTimes(t *testing.T) {
	h := newHarness(t)
	h.must("1", "admin", `{setParameter: 1, cursorTimeoutMillis: 2000}`)
	h.must("1", "admin", `{insert: "c", documents: [{_id: 1}]}`)
	h.must("1", "admin", `{find: "c", batchSize: 0}`)
	for _, step := range []struct {
		wait time.Duration
		open int64
	}{{1900 * time.Millisecond, 1}, {100 * time.Millisecond, 0}} {
		h.clock.Advance(step.wait)
		h.server.endIdle()
		if open, _, _, _ := h.server.Cursors.Counts(); open != step.open {
			t.Errorf("after another %s %d cursors are open, not %d", step.wait, open, step.open)
		}
	}
}

// TestSessionCursors: a cursor of a session ends with the session, unless the parameter says that it ends when it is idle. One whose session has
// ended while it was made ends like one of no session.
func TestSessionCursors(t *testing.T) {
	const lsid = `lsid: {id: UUID('11111111-1111-4111-8111-111111111111')}`
	for _, c := range []struct {
		name  string
		first string
		wait  time.Duration
		open  int64
	}{
		{"idle", `{ping: 1}`, cursor.IdleTimeout, 1},
		{"idle, and the parameter", `{setParameter: 1, enableTimeoutOfInactiveSessionCursors: true}`, cursor.IdleTimeout, 0},
		{"its session is over", `{ping: 1}`, session.Timeout, 0},
	} {
		h := newHarness(t)
		h.must("1", "admin", c.first)
		h.must("1", "admin", `{insert: "c", documents: [{_id: 1}]}`)
		h.must("1", "admin", `{find: "c", batchSize: 0, `+lsid+`}`)
		h.clock.Advance(c.wait)
		h.server.endIdle()
		if open, _, _, _ := h.server.Cursors.Counts(); open != c.open {
			t.Errorf("%s: %d cursors are open, not %d", c.name, open, c.open)
		}
	}
	h := newHarness(t)
	if err := h.server.Cursors.Add(&cursor.Cursor{NS: "test.c", LSID: "ended", Source: &bulkResults{}}); err != nil {
		t.Fatal(err)
	}
	h.clock.Advance(cursor.IdleTimeout)
	h.server.endIdle()
	if open, _, _, _ := h.server.Cursors.Counts(); open != 0 {
		t.Error("the cursor of a session that has ended is open")
	}
}

// TestBusySessionLives: a session does not end while an operation runs in it.
func TestBusySessionLives(t *testing.T) {
	h := newHarness(t)
	h.must("1", "admin", `{refreshSessions: [{id: UUID('11111111-1111-4111-8111-111111111111')}]}`)
	id := h.server.Sessions.Live()[0].ID
	o := &operation.Operation{Session: id}
	h.server.Ops.Start(t.Context(), o)
	for _, running := range []bool{true, false} {
		h.clock.Advance(session.Timeout)
		h.server.endIdle()
		if h.server.Sessions.Lives(id) != running {
			t.Errorf("running: %t, and the session lives: %t", running, !running)
		}
		if running {
			h.server.Ops.Finish(o)
		}
	}
}

func TestSessionMinutes(t *testing.T) {
	h := newHarness(t)
	if err := h.server.Params.Lookup("localLogicalSessionTimeoutMinutes").Parse("2"); err != nil {
		t.Fatal(err)
	}
	if got := h.must("1", "admin", `{hello: 1}`).Lookup("logicalSessionTimeoutMinutes").String(); got != "2" {
		t.Errorf("hello says %s minutes", got)
	}
	h.must("1", "admin", `{startSession: 1}`)
	h.clock.Advance(2 * time.Minute)
	h.server.endIdle()
	if n := h.server.Sessions.Count(); n != 0 {
		t.Errorf("%d sessions are left", n)
	}
}

func TestDiskUseByDefault(t *testing.T) {
	h := newHarness(t)
	for _, spills := range []string{"false", "true"} {
		h.must("1", "admin", `{setParameter: 1, allowDiskUseByDefault: `+spills+`}`)
		op := &Op{Server: h.server, Conn: NewConn(0, "", ""), Args: NewArgs("aggregate", bson.MustDoc(`{aggregate: "c", pipeline: [], cursor: {}}`)), DB: "test", Running: &operation.Operation{}}
		r, err := op.parseAggregate(op.Args)
		if err != nil || r.call.AllowDiskUse != (spills == "true") {
			t.Errorf("by default %s, and an aggregate: %t, %v", spills, r.call.AllowDiskUse, err)
		}
	}
}
