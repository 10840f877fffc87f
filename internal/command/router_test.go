package command

import (
	"strings"
	"testing"

	"github.com/ebbdb/ebb/internal/kv"
)

// TestRouterSaysSo: a server that clients see as a router says that it is one, wherever it says what it is.
func TestRouterSaysSo(t *testing.T) {
	h := newHarnessAs(t, nil, func(e kv.Engine) kv.Engine { return e })
	h.server.Router = true
	if reply := h.ok(t, "admin", "{serverStatus: 1}").Text(); !strings.Contains(reply, `process: "mongos"`) || !strings.Contains(reply, `service: [ "router" ]`) {
		t.Errorf("serverStatus says %s", reply)
	}
	if reply := h.ok(t, "admin", "{hello: 1}").Text(); !strings.Contains(reply, `msg: "isdbgrid"`) {
		t.Errorf("hello says %s", reply)
	}
}
