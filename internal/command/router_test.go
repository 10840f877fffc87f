package command

import (
	"strings"
	"testing"

	"github.com/ebbdb/ebb/internal/bson"
)

// TestRouterSaysSo: a server that clients see as a router says that it is one, wherever it says what it is.
func TestRouterSaysSo(t *testing.T) {
	plain := newHarness(t)
	if reply := plain.send(t.Context(), "c", "admin", bson.MustDoc("{isdbgrid: 1}")).Body.Text(); !strings.Contains(reply, "no such command: 'isdbgrid'") {
		t.Errorf("a server that is none answers isdbgrid with %s", reply)
	}
	h := newHarness(t)
	h.server.Router = true
	h.server.table.add(routerCommands())
	if reply := h.ok(t, "admin", "{serverStatus: 1}").Text(); !strings.Contains(reply, `process: "mongos"`) || !strings.Contains(reply, `service: [ "router" ]`) {
		t.Errorf("serverStatus says %s", reply)
	}
	if reply := h.ok(t, "admin", "{hello: 1}").Text(); !strings.Contains(reply, `msg: "isdbgrid"`) {
		t.Errorf("hello says %s", reply)
	}
	if reply := h.ok(t, "test", "{isdbgrid: 1}"); reply.Lookup("isdbgrid").Int32() != 1 || reply.Lookup("hostname").Str() == "" {
		t.Errorf("isdbgrid says %s", reply)
	}
}
