package command

import (
	"strings"
	"testing"

	"github.com/ebbdb/ebb/internal/auth"
	"github.com/ebbdb/ebb/internal/auth/scram"
	"github.com/ebbdb/ebb/internal/bson"
	"github.com/ebbdb/ebb/internal/kv"
	"github.com/ebbdb/ebb/internal/parameter"
)

// TestLocalhostException looks at what one may do who has not logged in, where there are no users yet and where there are.
func TestLocalhostException(t *testing.T) {
	h := &logins{harness: newHarness(t)}
	h.server.Users = auth.New(h.server.Query)
	h.server.Authorization = true
	remote := h.server.Connect(50, "10.0.0.1:5000", "10.0.0.2:27018")
	answer := func(c *Conn, db, command string) (int64, string) {
		r := h.sendOn(t.Context(), c, db, bson.MustDoc(command)).Body
		code, _ := r.Lookup("code").AsInt64()
		return code, r.Lookup("errmsg").Text()
	}
	check := func(what string, c *Conn, db, command string, code int64, text string) {
		t.Helper()
		if got, words := answer(c, db, command); got != code || text != "" && words != `"`+text+`"` {
			t.Errorf("%s: %s: %d %s", what, command, got, words)
		}
	}
	local := h.conn("1")
	check("no users", local, "admin", "{ping: 1}", 0, "")
	check("no users", local, "test", `{find: "c"}`, 13, `not authorized on test to execute command { find: \"c\", $db: \"test\" }`)
	check("no users", local, "admin", `{replSetGetStatus: 1}`, 76, "")
	check("no users", local, "admin", `{replSetInitiate: {}}`, 76, "")
	check("no users, from elsewhere", remote, "admin", `{replSetGetStatus: 1}`, 13, "Command replSetGetStatus requires authentication")
	h.server.Authorization = false
	h.store("both", scram.SHA256)
	h.server.Authorization = true
	check("a user", local, "test", `{find: "c"}`, 13, "Command find requires authentication")
	check("a user", local, "admin", `{replSetGetStatus: 1}`, 13, "Command replSetGetStatus requires authentication")
	check("a user", local, "admin", "{ping: 1}", 0, "")
}

func TestNoLocalhostException(t *testing.T) {
	h := newHarnessAs(t, nil, func(e kv.Engine) kv.Engine { return e }, func(r *parameter.Registry) {
		if _, err := r.Set(localhostBypassName, bson.String("0"), parameter.Startup); err != nil {
			t.Fatal(err)
		}
	})
	h.server.Users = auth.New(h.server.Query)
	h.server.Authorization = true
	if r := h.send(t.Context(), "1", "admin", bson.MustDoc(`{replSetGetStatus: 1}`)).Body; r.Lookup("errmsg").Text() != `"Command replSetGetStatus requires authentication"` {
		t.Error(r)
	}
}

// TestLoginWithoutUsers: who cannot log in since there are no users is told so, but nobody from elsewhere where one has to log in.
func TestLoginWithoutUsers(t *testing.T) {
	h := newHarness(t)
	remote := h.server.Connect(50, "10.0.0.1:5000", "10.0.0.2:27018")
	login := func(c *Conn, authorization bool) string {
		h.server.Authorization = authorization
		h.sendOn(t.Context(), c, "admin", bson.MustDoc(`{saslStart: 1, mechanism: "SCRAM-SHA-256", payload: "biwsbj1ib3RoLHI9YWJjZGVmZ2g="}`))
		return h.sendOn(t.Context(), c, "admin", bson.MustDoc(`{saslContinue: 1, conversationId: 1, payload: ""}`)).Body.Lookup("errmsg").Str()
	}
	for _, c := range []struct {
		what          string
		conn          *Conn
		authorization bool
		told          bool
	}{{"nobody has to log in", remote, false, true}, {"from this machine", h.conn("1"), true, true}, {"from elsewhere", remote, true, false}} {
		if got := login(c.conn, c.authorization); strings.Contains(got, "has no users") != c.told || !strings.HasPrefix(got, "Authentication failed.") {
			t.Errorf("%s: %s", c.what, got)
		}
	}
}
