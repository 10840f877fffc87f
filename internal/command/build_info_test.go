package command

import (
	"testing"

	"github.com/ebbdb/ebb/internal/bson"
)

// TestBuildInfoOfTheUnknown: who has not logged in learns of the build what buildInfoAuthMode says, and all of it from this machine while there is
// nobody who could log in.
func TestBuildInfoOfTheUnknown(t *testing.T) {
	h := newHarness(t)
	ask := func(conn *Conn) string {
		t.Helper()
		reply := h.sendOn(t.Context(), conn, "admin", bson.MustDoc("{buildInfo: 1}")).Body
		switch {
		case !reply.Lookup("ok").Truthy():
			return reply.Lookup("errmsg").Str()
		case reply.Lookup("gitVersion").IsMissing():
			return reply.String()
		}
		return "all"
	}
	const refused = "Command buildInfo requires authentication"
	far := func() *Conn { return h.server.Connect(100, "192.0.2.7:50000", "192.0.2.1:27018") }
	set := func(mode string) {
		t.Helper()
		h.server.Authorization = false
		h.must("1", "admin", `{setParameter: 1, buildInfoAuthMode: "`+mode+`"}`)
		h.server.Authorization = true
	}
	h.server.Authorization = true
	for _, c := range []struct {
		conn *Conn
		want string
	}{{h.conn("near"), "all"}, {far(), refused}} {
		if got := ask(c.conn); got != c.want {
			t.Errorf("nobody at %s, and no users: %s", c.conn.Remote, got)
		}
	}
	g := newGuarded(t, h)
	g.user("ann")
	for mode, want := range map[string]string{
		"requiresAuth":         refused,
		"versionOnlyIfPreAuth": `{ version: "8.2.4", versionArray: [ 8, 2, 4, 0 ], ok: 1.0 }`,
		"allowedPreAuth":       "all",
	} {
		set(mode)
		for _, conn := range []*Conn{h.conn("near"), far()} {
			if got := ask(conn); got != want {
				t.Errorf("%s, nobody at %s: %s", mode, conn.Remote, got)
			}
		}
		if got := ask(h.conn("ann")); got != "all" {
			t.Errorf("%s, a user without roles: %s", mode, got)
		}
	}
	h.server.Authorization = false
	set("requiresAuth")
	h.server.Authorization = false
	if got := ask(far()); got != "all" {
		t.Errorf("where nobody logs in: %s", got)
	}
	if reply := h.send(t.Context(), "1", "admin", bson.MustDoc(`{setParameter: 1, buildInfoAuthMode: "never"}`)).Body; reply.Lookup("code").Int32() != 2 {
		t.Error(reply)
	}
}
