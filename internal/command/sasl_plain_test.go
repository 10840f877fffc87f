package command

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/ebbdb/ebb/internal/auth"
	"github.com/ebbdb/ebb/internal/auth/patience"
	"github.com/ebbdb/ebb/internal/bson"
)

// fakeDirectory takes "sesame" from everybody, and tells the roles of "told" alone.
type fakeDirectory struct{}

func (fakeDirectory) Login(_ context.Context, user, password string) (roles []string, known bool, err error) {
	if password != "sesame" {
		return nil, false, errors.New("the directory does not take the password")
	}
	return []string{"readAnyDatabase", "noSuchRole"}, user == "told", nil
}

func newPlainLogins(t *testing.T) *logins {
	h := newLogins(t)
	h.server.Directory = fakeDirectory{}
	if err := h.server.Params.Lookup(mechanismsName).Set(bson.String("PLAIN,SCRAM-SHA-256")); err != nil {
		t.Fatal(err)
	}
	h.server.Authorization = false
	h.run("admin", `{insert: "system.users", documents: [{_id: "$external.stored", user: "stored", db: "$external", credentials: {external: true}, roles: [{role: "read", db: "test"}]}]}`)
	h.server.Authorization = true
	return h
}

func (h *logins) plain(conn, db, message string) string {
	return h.send(h.t.Context(), conn, db, bson.Build().Int32("saslStart", 1).String("mechanism", plainMechanism).Binary("payload", 0, []byte(message)).Doc()).Body.String()
}

func TestPlain(t *testing.T) {
	for _, c := range []struct{ name, db, message, user, roles string }{
		{"stored", "$external", "\x00stored\x00sesame", "stored", `[ { role: "read", db: "test" } ]`},
		{"told", "$external", "\x00told\x00sesame", "told", `[ { role: "readAnyDatabase", db: "admin" }`},
		{"for itself", "$external", "told\x00told\x00sesame", "told", `[ { role: "readAnyDatabase", db: "admin" }`},
		{"for somebody else", "$external", "stored\x00told\x00sesame", "", ""},
		{"wrong password", "$external", "\x00told\x00Sesame", "", ""},
		{"no password", "$external", "\x00told\x00", "", ""},
		{"no name", "$external", "\x00\x00sesame", "", ""},
		{"unknown user", "$external", "\x00nobody\x00sesame", "", ""},
		{"another database", "admin", "\x00both\x00sesame", "", ""},
		{"more of it", "$external", "\x00told\x00sesame\x00", "", ""},
		{"no text", "$external", "\x00told\xff\x00sesame", "", ""},
		{"nothing", "$external", "", "", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			h := newPlainLogins(t)
			reply := h.plain("1", c.db, c.message)
			status := h.send(t.Context(), "1", "admin", bson.MustDoc("{connectionStatus: 1}")).Body.String()
			if strings.Contains(strings.ToLower(h.log.String()), "sesame") {
				t.Errorf("log: %s", h.log)
			}
			if c.user == "" {
				if !strings.Contains(reply, "Authentication failed.") || !strings.Contains(status, "authenticatedUsers: []") {
					t.Errorf("%s, %s", reply, status)
				}
				return
			}
			if !strings.HasPrefix(reply, "{ conversationId: 1, done: true, payload: ") {
				t.Error(reply)
			}
			if !strings.Contains(status, `{ user: "`+c.user+`", db: "$external" }`) || !strings.Contains(status, "authenticatedUserRoles: "+c.roles) {
				t.Error(status)
			}
		})
	}
}

// TestPlainPatience: the first message is a guess already.
func TestPlainPatience(t *testing.T) {
	h := newPlainLogins(t)
	for range patience.Free + 1 {
		h.plain("1", "$external", "\x00told\x00no")
	}
	from := patience.From(address(""), "told@$external")
	if w := h.server.patience.Wait(from, h.clock.Now()); w != patience.Least {
		t.Error(w)
	}
}

// TestPlainOff: nobody logs in by it where there is no directory, or where the parameter does not name it.
func TestPlainOff(t *testing.T) {
	without, unnamed := newPlainLogins(t), newLogins(t)
	without.server.Directory = nil
	unnamed.server.Directory = fakeDirectory{}
	for _, h := range []*logins{without, unnamed} {
		if r := h.plain("1", "$external", "\x00told\x00sesame"); !strings.Contains(r, "MechanismUnavailable") {
			t.Error(r)
		}
	}
}

// TestPlainWithoutUsers: a server whose users are in the directory does not say that it has none.
func TestPlainWithoutUsers(t *testing.T) {
	h := newPlainLogins(t)
	h.server.Authorization = false
	h.run("admin", `{delete: "system.users", deletes: [{q: {}, limit: 0}]}`)
	h.server.Authorization = true
	if r := h.plain("1", "$external", "\x00told\x00no"); !strings.Contains(r, `errmsg: "Authentication failed."`) {
		t.Error(r)
	}
}

// TestGuessesOfWhoHasHungUp: a client that only sends no more still gets its answers, so what it guesses counts, and the log tells of it.
func TestGuessesOfWhoHasHungUp(t *testing.T) {
	for _, user := range []auth.Name{{Name: "told", DB: externalDB}, {Name: "sha256", DB: "admin"}} {
		h := newPlainLogins(t)
		gone, hangUp := context.WithCancel(t.Context())
		hangUp()
		c := h.conn("1")
		for range patience.Free + 1 {
			if err := h.server.LogIn(gone, c, user.DB, user.Name, "no"); err == nil {
				t.Errorf("%s: a wrong password does", user)
			}
		}
		if told := strings.Count(h.log.String(), "Failed to authenticate"); told != patience.Free+1 {
			t.Errorf("%s: the log tells of %d logins that failed: %s", user, told, h.log)
		}
		if wait := h.server.patience.Wait(patience.From(address(c.Remote), user.String()), h.clock.Now()); wait != patience.Least {
			t.Errorf("%s: the next one waits %v", user, wait)
		}
	}
}
