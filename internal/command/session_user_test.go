package command

import (
	"encoding/base64"
	"fmt"
	"strings"
	"testing"

	"github.com/ebbdb/ebb/internal/auth/scram"
	"github.com/ebbdb/ebb/internal/bson"
	"github.com/ebbdb/ebb/internal/session"
)

// TestSessionsOfUsers has a user who knows the UUID of another's session do with it what one does with a session.
func TestSessionsOfUsers(t *testing.T) {
	m := newMember(t)
	if r := m.send(t.Context(), "setup", "admin", bson.MustDoc("{replSetInitiate: {}}")).Body; !r.Lookup("ok").Truthy() {
		t.Fatal(r)
	}
	h := newLoginsOn(t, m)
	h.server.Authorization = false
	h.run("test", `{insert: "c", documents: [{}, {}, {}]}`)
	h.server.Authorization = true
	for _, user := range []string{"both", "sha256"} {
		if r := (talker{h: h, conn: user, db: "admin", mechanism: scram.SHA256, user: user, pwd: "pw"}).login(); !r.Lookup("done").Truthy() {
			t.Fatal(r)
		}
	}
	const lsid = `{id: UUID("00112233-4455-4677-8899-aabbccddeeff")}`
	send := func(user, db, command string) bson.Doc {
		return h.send(t.Context(), user, db, bson.MustDoc(strings.ReplaceAll(command, "LSID", lsid))).Body
	}
	check := func(user, db, command string, code float64) bson.Doc {
		t.Helper()
		r := send(user, db, command)
		if r.Lookup("code").AsDouble() != code && !(code == 0 && r.Lookup("ok").Truthy()) {
			t.Errorf("%s: %s: %s", user, command, r)
		}
		return r
	}
	cursor := check("both", "test", `{find: "c", batchSize: 1, lsid: LSID}`, 0).Lookup("cursor").Doc().Lookup("id").String()
	if r := check("sha256", "test", `{getMore: `+cursor+`, collection: "c", lsid: LSID}`, 13); !strings.Contains(r.Lookup("errmsg").Str(), "is not the same as the operation context's session id") {
		t.Error(r)
	}
	transaction := `lsid: LSID, txnNumber: NumberLong(1), autocommit: false`
	check("both", "test", `{find: "c", startTransaction: true, `+transaction+`}`, 0)
	check("sha256", "test", `{find: "c", `+transaction+`}`, 251)
	check("sha256", "admin", `{commitTransaction: 1, `+transaction+`}`, 251)
	check("sha256", "admin", `{abortTransaction: 1, `+transaction+`}`, 251)
	check("sha256", "admin", `{endSessions: [LSID]}`, 0)
	check("sha256", "admin", `{killSessions: [LSID]}`, 0)
	check("sha256", "admin", `{killSessions: []}`, 0)
	uid := `{id: UUID("00112233-4455-4677-8899-aabbccddeeff"), uid: BinData(0, "` + uidText("both@admin") + `")}`
	check("sha256", "admin", `{killSessions: [`+uid+`]}`, 13)
	check("sha256", "test", `{find: "c", lsid: `+uid+`}`, 13)
	check("sha256", "admin", `{killAllSessions: []}`, 13)
	check("both", "test", `{find: "c", lsid: `+uid+`}`, 0)
	check("both", "test", `{getMore: `+cursor+`, collection: "c", batchSize: 1, lsid: LSID}`, 0)
	check("both", "admin", `{commitTransaction: 1, `+transaction+`}`, 0)
	check("both", "admin", `{killSessions: []}`, 0)
	check("both", "test", `{getMore: `+cursor+`, collection: "c", lsid: LSID}`, 43)
	check("sha256", "test", `{find: "c", lsid: LSID}`, 0)
	for _, user := range []string{"both", "sha256"} {
		got := check(user, "test", `{aggregate: 1, pipeline: [{$listLocalSessions: {}}], cursor: {}}`, 0).Lookup("cursor").Doc().Lookup("firstBatch").Doc()
		if got.Count() != 1 || !strings.Contains(got.String(), fmt.Sprintf("%X", session.UID(user+"@admin"))) {
			t.Errorf("sessions of %s: %s", user, got)
		}
	}
}

// uidText is a user's digest in base64.
func uidText(user string) string {
	uid := session.UID(user)
	return base64.StdEncoding.EncodeToString(uid[:])
}

// TestNobodysSessions: who has not logged in leaves no sessions.
func TestNobodysSessions(t *testing.T) {
	h := newLogins(t)
	before := h.server.Sessions.Count()
	for _, command := range []string{"{ping: 1}", "{hello: 1}", `{find: "c"}`, `{refreshSessions: []}`, `{startSession: 1}`} {
		h.send(t.Context(), "1", "admin", bson.Build().Fields(bson.MustDoc(command)).Object("lsid").Binary("id", 4, make([]byte, 16)).End().Doc())
	}
	if n := h.server.Sessions.Count() - before; n != 0 {
		t.Errorf("%d are there", n)
	}
	talker{h: h, conn: "1", db: "admin", mechanism: scram.SHA256, user: "both", pwd: "pw"}.login()
	h.send(t.Context(), "1", "admin", bson.MustDoc(`{ping: 1, lsid: {id: UUID("00112233-4455-4677-8899-aabbccddeeff")}}`))
	if n := h.server.Sessions.Count() - before; n != 1 {
		t.Errorf("%d are there of who has logged in", n)
	}
}

// TestClusterTimeOfOthers: who may not turn the cluster's time ahead does not by telling of a later one, logged in or not.
func TestClusterTimeOfOthers(t *testing.T) {
	m := newMember(t)
	if r := m.send(t.Context(), "setup", "admin", bson.MustDoc("{replSetInitiate: {}}")).Body; !r.Lookup("ok").Truthy() {
		t.Fatal(r)
	}
	now := uint32(m.clock.Now().Unix())
	h := newLoginsOn(t, m)
	h.server.Authorization = false
	h.run("admin", `{createRole: "clock", privileges: [{resource: {cluster: true}, actions: ["advanceClusterTime"]}], roles: []}`)
	h.run("admin", `{grantRolesToUser: "sha256", roles: ["clock"]}`)
	tell := func(user string, ahead uint32, authorization bool) uint32 {
		m.server.Authorization = authorization
		times := bson.Build().Int32("hello", 1).Object("$clusterTime").Timestamp("clusterTime", now+ahead, 1).Object("signature").End().End().Doc()
		r := m.send(t.Context(), user, "admin", times).Body
		seconds, _ := r.Lookup("$clusterTime").Doc().Lookup("clusterTime").Timestamp()
		return seconds
	}
	h.server.Authorization = true
	for _, user := range []string{"both", "sha256"} {
		if r := (talker{h: h, conn: user, db: "admin", mechanism: scram.SHA256, user: user, pwd: "pw"}).login(); !r.Lookup("done").Truthy() {
			t.Fatal(r)
		}
	}
	for _, user := range []string{"nobody", "both"} {
		if got := tell(user, 1000, true); got > now+10 {
			t.Errorf("%s has turned the time %d seconds ahead", user, got-now)
		}
	}
	if got := tell("sha256", 1000, true); got != now+1000 {
		t.Errorf("who may has turned the time %d seconds ahead", got-now)
	}
	if got := tell("nobody", 2000, false); got != now+2000 {
		t.Errorf("where nobody logs in the time is %d seconds ahead", got-now)
	}
}
