package command

import (
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/ebbdb/ebb/internal/audit"
	"github.com/ebbdb/ebb/internal/bson"
	"github.com/ebbdb/ebb/internal/certificate"
)

// TestAuditOfLoginsOutside: what the audit log tells of logins of those whom somebody else knows: a directory, an issuer of tokens, an authority. It is
// the event of every login, and neither passwords nor tokens are in it.
func TestAuditOfLoginsOutside(t *testing.T) {
	on, issuer := newTokensHarness(t, "MONGODB-OIDC,PLAIN,MONGODB-X509,SCRAM-SHA-256")
	h := newAudited(t, on, audit.Options{})
	h.server.Directory = fakeDirectory{}
	ts := &tokens{h.logins, issuer}
	ts.storeUsersOfTokens()
	h.server.Authorization = false
	h.run(externalDB, `{createUser: "CN=ann,O=Ebb", roles: [{role: "read", db: "test"}]}`)
	h.server.Authorization = true
	h.events()

	const ann = "CN=ann,O=Ebb"
	logIn := func(conn, db, mechanism string, payload []byte) func() {
		return func() {
			h.send(t.Context(), conn, db, bson.Build().Int32("saslStart", 1).String("mechanism", mechanism).Binary("payload", 0, payload).Doc())
		}
	}
	showing := func(subject, command string) func() {
		return func() {
			conn := h.server.Connect(99, "127.0.0.1:50099", "127.0.0.1:27018")
			conn.Peer = func() *certificate.Peer { return &certificate.Peer{Subject: subject} }
			h.sendOn(t.Context(), conn, externalDB, bson.MustDoc(command))
			h.server.Disconnect(conn)
		}
	}
	good, work, strange, old := ts.token("ann", "people"), ts.token("bot", "programs"), ts.token("ann", "strangers"), ts.token("ann", "people", "exp", h.clock.Now().Unix()-1)
	event := func(users, user, db, mechanism string, result int) string {
		return fmt.Sprintf(`authenticate [%s] { user: %q, db: %q, mechanism: %q } %d`, users, user, db, mechanism, result)
	}
	gone := func(user string) string {
		return fmt.Sprintf(`logout [%s] { reason: "Implicit logout due to client connection closure", initialUsers: [ { user: %[1]q, db: "$external" } ], updatedUsers: [] } 0`, user)
	}
	for _, c := range []struct {
		what string
		do   func()
		want []string
	}{
		{"a password of a directory", logIn("p1", externalDB, "PLAIN", []byte("\x00told\x00sesame")), []string{event("told", "told", externalDB, "PLAIN", 0)}},
		{"a wrong one", logIn("p2", externalDB, "PLAIN", []byte("\x00told\x00Sesame2")), []string{event("", "told", externalDB, "PLAIN", 18)}},
		{"an empty one", logIn("p3", externalDB, "PLAIN", []byte("\x00told\x00")), []string{event("", "told", externalDB, "PLAIN", 18)}},
		{"one of a stranger", logIn("p4", externalDB, "PLAIN", []byte("\x00nobody\x00sesame")), []string{event("", "nobody", externalDB, "PLAIN", 18)}},
		{"no message of PLAIN", logIn("p5", externalDB, "PLAIN", []byte("sesame")), []string{event("", "", externalDB, "PLAIN", 18)}},
		{"PLAIN for a database of its own", logIn("p6", "admin", "PLAIN", []byte("\x00both\x00sesame")), []string{event("", "both", "admin", "PLAIN", 18)}},
		{"a token of a person", logIn("t1", externalDB, oidcMechanism, jwt(good)), []string{event("corp/ann", "corp/ann", externalDB, oidcMechanism, 0)}},
		{"a token of a program", logIn("t2", externalDB, oidcMechanism, jwt(work)), []string{event("work/bot", "work/bot", externalDB, oidcMechanism, 0)}},
		{"a token for others", logIn("t3", externalDB, oidcMechanism, jwt(strange)), []string{event("", "", externalDB, oidcMechanism, 18)}},
		{"a token that is over", logIn("t4", externalDB, oidcMechanism, jwt(old)), []string{event("", "corp/ann", externalDB, oidcMechanism, 18)}},
		{"no token", logIn("t5", externalDB, oidcMechanism, jwt("sesame.sesame.sesame")), []string{event("", "", externalDB, oidcMechanism, 18)}},
		{"a certificate", showing(ann, `{authenticate: 1, mechanism: "MONGODB-X509"}`), []string{event(ann, ann, externalDB, x509Mechanism, 0), gone(ann)}},
		{"a certificate within hello", showing(ann, `{hello: 1, speculativeAuthenticate: {authenticate: 1, mechanism: "MONGODB-X509", db: "$external"}}`),
			[]string{event(ann, ann, externalDB, x509Mechanism, 0), gone(ann)}},
		{"a certificate of a stranger", showing("CN=bob", `{authenticate: 1, mechanism: "MONGODB-X509"}`), []string{event("", "CN=bob", externalDB, x509Mechanism, 18)}},
		{"a certificate for somebody else", showing("CN=bob", `{authenticate: 1, mechanism: "MONGODB-X509", user: "`+ann+`"}`), []string{event("", ann, externalDB, x509Mechanism, 18)}},
	} {
		c.do()
		h.clock.Advance(time.Minute) // failures are forgiven
		var got []string
		for _, e := range h.events() {
			got = append(got, eventLine(e))
			if users := e.Lookup("users").Doc(); users.Count() > 0 && users.Lookup("0").Doc().Lookup("db").Str() != externalDB {
				t.Errorf("%s: the users are %s", c.what, users)
			}
			if roles := e.Lookup("roles").Doc(); (roles.Count() > 0) != (e.Lookup("users").Doc().Count() > 0) {
				t.Errorf("%s: the roles are %s", c.what, roles)
			}
		}
		if strings.Join(got, "\n") != strings.Join(c.want, "\n") {
			t.Errorf("%s: got\n%s\nwant\n%s", c.what, strings.Join(got, "\n"), strings.Join(c.want, "\n"))
		}
	}
	h.server.Disconnect(h.conn("t1"))
	if events := h.events(); len(events) != 1 || eventLine(events[0]) != gone("corp/ann") {
		t.Errorf("the end of a connection by a token: %s", events)
	}
	text, err := os.ReadFile(h.path)
	if err != nil {
		t.Fatal(err)
	}
	for _, secret := range []string{"esame", good, work, strange, old, strings.Split(good, ".")[2]} {
		if strings.Contains(string(text), secret) {
			t.Errorf("the audit log has %.20q", secret)
		}
	}
}
