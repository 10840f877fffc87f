package command

import (
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"

	"github.com/ebbdb/ebb/internal/auth"
	"github.com/ebbdb/ebb/internal/bson"
)

// TestUserRoles runs the cases in testdata/login/user_roles.txt, where a connection called after a user of the database app is that user's.
// What stands below "setup" is run as if nobody had to log in.
func TestUserRoles(t *testing.T) {
	h := newHarness(t)
	datadriven.RunTest(t, "testdata/login/user_roles.txt", func(t *testing.T, d *datadriven.TestData) string {
		h.server.Authorization = d.Cmd != "setup"
		if d.Cmd == "setup" {
			return h.runCase(t, d)
		}
		user := ""
		d.ScanArgs(t, "conn", &user)
		if c := h.conn(user); c.user.Load() == nil && user != "nobody" {
			u, err := h.server.Users.Find(t.Context(), auth.Name{Name: user, DB: "app"})
			if err != nil {
				t.Fatal(err)
			}
			c.become(u)
		}
		return h.directive(t, d)
	})
}

// The batches of a cursor after the first go by its user's roles as well.
func TestUserRolesInLaterBatches(t *testing.T) {
	h := newLogins(t)
	h.server.Authorization = false
	h.run("test", `{insert: "c", documents: [{}, {}]}`)
	h.run("test", `{create: "v", viewOn: "c", pipeline: [{$project: {r: "$$USER_ROLES._id"}}]}`)
	h.server.Authorization = true
	u, err := h.server.Users.Find(t.Context(), roleIn("both", "admin"))
	if err != nil {
		t.Fatal(err)
	}
	h.conn("both").become(u)
	send := func(command string) bson.Doc {
		return h.send(t.Context(), "both", "test", bson.MustDoc(command)).Body.Lookup("cursor").Doc()
	}
	first := send(`{find: "v", batchSize: 1}`)
	next := send(`{getMore: ` + first.Lookup("id").String() + `, collection: "v"}`)
	if want := `r: [ "test.read" ]`; !strings.Contains(first.String(), want) || !strings.Contains(next.Lookup("nextBatch").String(), want) {
		t.Errorf("%s, %s: no %s", first, next, want)
	}
}
