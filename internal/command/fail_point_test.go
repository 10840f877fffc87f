package command

import (
	"testing"
	"time"

	"github.com/ebbdb/ebb/internal/bson"
	"github.com/ebbdb/ebb/internal/mongoerr"
)

// TestNoFailPoints: a server that was started without enableTestCommands has no fail points, and nothing to turn them on with.
func TestNoFailPoints(t *testing.T) {
	h := newMember(t)
	for _, text := range []string{"{configureFailPoint: 'failCommand', mode: 'off'}", "{waitForFailPoint: 'failCommand', timesEntered: 0}"} {
		if r := h.send(t.Context(), "1", "admin", bson.MustDoc(text)).Body; r.Lookup("code").Int32() != int32(mongoerr.CommandNotFound) {
			t.Errorf("%s: %s", text, r)
		}
	}
	if h.server.failPoints != nil || h.server.Params.Lookup("failpoint.failCommand") != nil {
		t.Error("there are fail points")
	}
}

// TestFailGetMore: a getMore that fails after it has taken the cursor ends that.
func TestFailGetMore(t *testing.T) {
	h := newTested(t)
	h.ok(t, "admin", "{replSetInitiate: 1}")
	h.ok(t, "test", "{insert: 'c', documents: [{_id: 1}, {_id: 2}]}")
	h.ok(t, "admin", "{configureFailPoint: 'failGetMoreAfterCursorCheckout', mode: 'alwaysOn', data: {namespace: 'test.c'}}")
	id := h.ok(t, "test", "{find: 'c', batchSize: 1}").Lookup("cursor").Doc().Lookup("id")
	getMore := bson.Build().Value("getMore", id).String("collection", "c").Doc()
	if r := h.send(t.Context(), "1", "test", getMore).Body; r.Lookup("errmsg").Str() != "Hit the 'failGetMoreAfterCursorCheckout' failpoint" || r.Lookup("code").Int32() != 1 {
		t.Error(r)
	}
	if r := h.send(t.Context(), "1", "test", getMore).Body; r.Lookup("code").Int32() != int32(mongoerr.CursorNotFound) {
		t.Error(r)
	}
}

// TestNoTimeForGetMore: a getMore has what is left of its cursor's time, which is nothing where a fail point says so.
func TestNoTimeForGetMore(t *testing.T) {
	h := newTested(t)
	h.ok(t, "admin", "{replSetInitiate: 1}")
	h.ok(t, "test", "{insert: 'c', documents: [{_id: 1}, {_id: 2}, {_id: 3}]}")
	id := h.ok(t, "test", "{find: 'c', batchSize: 1, maxTimeMS: 100000}").Lookup("cursor").Doc().Lookup("id")
	getMore := bson.Build().Value("getMore", id).String("collection", "c").Int32("batchSize", 1).Doc()
	h.ok(t, "admin", "{configureFailPoint: 'maxTimeNeverTimeOut', mode: 'alwaysOn'}")
	h.ok(t, "admin", "{configureFailPoint: 'maxTimeAlwaysTimeOut', mode: 'alwaysOn'}")
	if r := h.send(t.Context(), "1", "test", getMore).Body; !r.Lookup("ok").Truthy() {
		t.Error(r)
	}
	h.ok(t, "admin", "{configureFailPoint: 'maxTimeNeverTimeOut', mode: 'off'}")
	wantCode(t, h.send(t.Context(), "1", "test", getMore), mongoerr.MaxTimeMSExpired)
}

// TestFailCommandBlocks: a command that is blocked waits by the server's clock, and can be killed.
func TestFailCommandBlocks(t *testing.T) {
	h := newTested(t)
	h.ok(t, "admin", "{configureFailPoint: 'failCommand', mode: 'alwaysOn', data: {failCommands: ['ping'], blockConnection: true, blockTimeMS: 1000}}")
	ping := func(entered string) chan Reply {
		done := h.start("2", "admin", "{ping: 1}")
		h.ok(t, "admin", "{waitForFailPoint: 'failCommand', timesEntered: "+entered+"}")
		return done
	}
	if r := h.later(ping("1"), time.Second).Body; !r.Lookup("ok").Truthy() {
		t.Error(r)
	}
	done := ping("2")
	for killed := false; !killed; {
		for _, o := range h.server.Ops.Running() {
			if o.Command.FirstKey() == "ping" {
				killed = h.server.Ops.Kill(o.ID)
			}
		}
	}
	wantCode(t, <-done, mongoerr.Interrupted)
}
