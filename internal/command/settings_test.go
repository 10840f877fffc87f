package command

import (
	"testing"
	"time"

	"github.com/ebbdb/ebb/internal/bson"
	"github.com/ebbdb/ebb/internal/operation"
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
