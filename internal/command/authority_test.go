package command

import (
	"testing"

	"github.com/ebbdb/ebb/internal/auth"
	"github.com/ebbdb/ebb/internal/auth/privilege"
	"github.com/ebbdb/ebb/internal/bson"
	"github.com/ebbdb/ebb/internal/mongoerr"
)

// What a user may do follows each change of users and roles, whoever makes it, and a user that is dropped is nobody, even when there
// is another one of its name.
func TestUsersAreAsTheyAreStored(t *testing.T) {
	h := newHarness(t)
	run := func(db, command string) {
		t.Helper()
		if reply := h.send(t.Context(), "1", db, bson.MustDoc(command)).Body; !reply.Lookup("ok").Truthy() {
			t.Fatal(command, reply.Text())
		}
	}
	name := auth.Name{Name: "u", DB: "app"}
	find := func() *auth.User {
		t.Helper()
		u, err := h.server.Users.Find(t.Context(), name)
		if err != nil {
			t.Fatal(err)
		}
		return u
	}
	coll := privilege.Collections("app", "c")

	run("app", "{createRole: 'inner', privileges: [], roles: []}")
	run("app", "{createRole: 'outer', privileges: [], roles: ['inner']}")
	run("app", "{createUser: 'u', pwd: 'p', roles: ['outer']}")
	first := find()
	if first.Grants.Allows(coll, privilege.Find) {
		t.Error("a role without privileges allows find")
	}
	if again, err := h.server.Users.Now(t.Context(), first); err != nil || again != first {
		t.Error("nothing has changed, and the user is another one", err)
	}
	run("app", "{grantPrivilegesToRole: 'inner', privileges: [{resource: {db: 'app', collection: 'c'}, actions: ['find']}]}")
	now, err := h.server.Users.Now(t.Context(), first)
	if err != nil || !now.Grants.Allows(coll, privilege.Find) {
		t.Error("what an inherited role allows does not hold at once", err)
	}
	run("admin", "{update: 'system.users', updates: [{q: {_id: 'app.u'}, u: {$set: {roles: []}}}]}")
	if now, err = h.server.Users.Now(t.Context(), now); err != nil || now.Grants.Allows(coll, privilege.Find) {
		t.Error("a write to system.users is not seen", err)
	}
	run("app", "{dropUser: 'u'}")
	if _, err := h.server.Users.Now(t.Context(), now); !mongoerr.Is(err, mongoerr.UserNotFound) {
		t.Error("the user is dropped and still there:", err)
	}
	run("app", "{createUser: 'u', pwd: 'p', roles: []}")
	if _, err := h.server.Users.Now(t.Context(), now); !mongoerr.Is(err, mongoerr.UserNotFound) {
		t.Error("another user of the name is taken for the one that was dropped:", err)
	}
}
