package command

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/ebbdb/ebb/internal/auth"
	"github.com/ebbdb/ebb/internal/auth/oidc/oidctest"
	"github.com/ebbdb/ebb/internal/auth/patience"
	"github.com/ebbdb/ebb/internal/bson"
	"github.com/ebbdb/ebb/internal/kv"
	"github.com/ebbdb/ebb/internal/parameter"
)

// tokens is a server that takes those of an issuer: for people as "corp/…", whose roles are in the token, and for programs as "work/…", who
// are stored.
type tokens struct {
	*logins
	issuer *oidctest.Issuer
}

func newTokens(t *testing.T) *tokens {
	h, issuer := newTokensHarness(t, "MONGODB-OIDC,SCRAM-SHA-256")
	ts := &tokens{newLoginsOn(t, h), issuer}
	ts.storeUsersOfTokens()
	return ts
}

// newTokensHarness is a server with these mechanisms that takes the tokens of an issuer.
func newTokensHarness(t testing.TB, mechanisms string) (*harness, *oidctest.Issuer) {
	issuer := oidctest.New(t)
	providers := fmt.Sprintf(`[{"issuer": %q, "audience": "people", "authNamePrefix": "corp", "clientId": "client", "requestScopes": ["email"], "authorizationClaim": "groups"},
		{"issuer": %q, "audience": "programs", "authNamePrefix": "work", "supportsHumanFlows": false, "useAuthorizationClaim": false}]`, issuer.URL, issuer.URL)
	return newHarnessAs(t, nil, func(e kv.Engine) kv.Engine { return e }, func(p *parameter.Registry) {
		for name, text := range map[string]string{mechanismsName: mechanisms, providersName: providers} {
			if _, err := p.Set(name, bson.String(text), parameter.Startup); err != nil {
				t.Fatal(err)
			}
		}
	}), issuer
}

// storeUsersOfTokens makes what people's tokens have roles by, and a program.
func (h *tokens) storeUsersOfTokens() {
	h.server.Authorization = false
	h.run("admin", `{createRole: "corp/dev", privileges: [], roles: [{role: "readWrite", db: "test"}]}`)
	h.run("$external", `{createUser: "work/bot", roles: [{role: "read", db: "test"}]}`)
	h.server.Authorization = true
}

// token is one of a user who is in the group dev.
func (h *tokens) token(sub, aud string, change ...any) string {
	claims := map[string]any{"sub": sub, "aud": aud, "exp": h.clock.Now().Add(time.Hour).Unix(), "groups": []string{"dev", "nothing"}}
	for i := 0; i < len(change); i += 2 {
		claims[change[i].(string)] = change[i+1]
	}
	return h.issuer.Token("one", claims)
}

func (h *tokens) start(conn, db string, message bson.Doc) string {
	h.t.Helper()
	return h.send(h.t.Context(), conn, db, bson.Build().Int32("saslStart", 1).String("mechanism", oidcMechanism).Binary("payload", 0, message).Doc()).Body.String()
}

func (h *tokens) goOn(conn string, message bson.Doc) string {
	h.t.Helper()
	return h.send(h.t.Context(), conn, externalDB, bson.Build().Int32("saslContinue", 1).Int32("conversationId", 1).Binary("payload", 0, message).Doc()).Body.String()
}

func jwt(token string) bson.Doc { return bson.Build().String("jwt", token).Doc() }

func (h *tokens) status(conn string) string {
	return h.send(h.t.Context(), conn, "admin", bson.MustDoc("{connectionStatus: 1}")).Body.String()
}

func (h *tokens) find(conn string) string {
	return h.send(h.t.Context(), conn, "test", bson.MustDoc(`{find: "c"}`)).Body.String()
}

// is wants the user to be logged in, and nobody where it is "".
func (h *tokens) is(conn, user, roles string) {
	h.t.Helper()
	want := "authenticatedUsers: [], authenticatedUserRoles: []"
	if user != "" {
		want = `authenticatedUsers: [ { user: "` + user + `", db: "$external" } ], authenticatedUserRoles: [ ` + roles + " ]"
	}
	if got := h.status(conn); !strings.Contains(got, want) {
		h.t.Errorf("%s, want %s", got, want)
	}
}

const devRoles = `{ role: "corp/dev", db: "admin" }, { role: "readWrite", db: "test" }`

// done is the last reply of a login.
const done = `{ conversationId: 1, done: true, payload: BinData(0, ), ok: 1.0 }`

func TestOIDC(t *testing.T) {
	h := newTokens(t)
	for _, c := range []struct{ conn, token, user, roles string }{
		{"claim", h.token("ann", "people"), "corp/ann", devRoles},
		{"stored", h.token("bot", "programs"), "work/bot", `{ role: "read", db: "test" }`},
	} {
		if r := h.start(c.conn, externalDB, jwt(c.token)); r != done {
			t.Error(r)
		}
		h.is(c.conn, c.user, c.roles)
		if r := h.find(c.conn); !strings.Contains(r, "ok: 1.0") {
			t.Error(r)
		}
		if strings.Contains(h.log.String(), c.token) || !strings.Contains(h.log.String(), `claims="map[iss:`) {
			t.Errorf("log: %s", h.log)
		}
	}
	if r := h.start("claim", externalDB, jwt(h.token("bob", "people"))); !strings.Contains(r, "Previously authenticated as: corp/ann@$external") {
		t.Error(r)
	}
	h.is("claim", "corp/ann", devRoles)
	for name, message := range map[string]bson.Doc{
		"expired": jwt(h.token("ann", "people", "exp", h.clock.Now().Unix()-1)), "of somebody else": jwt(h.token("ann", "strangers")),
		"no user": jwt(h.token("nobody", "programs")), "no token": jwt("a.b.c"), "no string": bson.MustDoc("{jwt: 1}"), "no document": bson.Doc("\x05"),
		"nothing": {},
	} {
		if r := h.start(name, externalDB, message); !strings.Contains(r, "Authentication failed.") {
			t.Error(name, r)
		}
		h.is(name, "", "")
	}
	if r := h.start("db", "admin", jwt(h.token("ann", "people"))); !strings.Contains(r, "Authentication failed.") {
		t.Error(r)
	}
	if r := h.start("large", externalDB, jwt(strings.Repeat("x", maxTokenBytes))); !strings.Contains(r, "16640 bytes at most") {
		t.Error(r)
	}
}

// TestOIDCPeople: who has no token yet is told where to get one, and has to come back as whom it said.
func TestOIDCPeople(t *testing.T) {
	h := newTokens(t)
	idp := bson.Build().String("issuer", h.issuer.URL).String("clientId", "client").Strings("requestScopes", []string{"email"}).Doc()
	want := bson.Build().Int32("conversationId", 1).Bool("done", false).Binary("payload", 0, idp).Double("ok", 1).Doc().String()
	for _, first := range []string{"{}", `{n: "ann"}`} {
		if r := h.start(first, externalDB, bson.MustDoc(first)); r != want {
			t.Error(r)
		}
		if r := h.goOn(first, jwt(h.token("ann", "people"))); r != done {
			t.Error(r)
		}
		h.is(first, "corp/ann", devRoles)
	}
	h.start("other", externalDB, bson.MustDoc(`{n: "bob"}`))
	if r := h.goOn("other", jwt(h.token("ann", "people"))); !strings.Contains(r, "Authentication failed.") || !strings.Contains(h.log.String(), "Principal name changed") {
		t.Error(r)
	}
	h.start("twice", externalDB, bson.MustDoc("{}"))
	if r := h.goOn("twice", bson.MustDoc("{}")); !strings.Contains(r, "Authentication failed.") {
		t.Error(r)
	}
}

// TestOIDCInHello: a login within hello.
func TestOIDCInHello(t *testing.T) {
	h := newTokens(t)
	hello := func(conn, token string) string {
		return h.send(t.Context(), conn, "admin", bson.Build().Int32("hello", 1).Object("speculativeAuthenticate").Int32("saslStart", 1).
			String("mechanism", oidcMechanism).Binary("payload", 0, jwt(token)).String("db", externalDB).End().Doc()).Body.String()
	}
	if r := hello("good", h.token("ann", "people")); !strings.Contains(r, "speculativeAuthenticate: { conversationId: 1, done: true") {
		t.Error(r)
	}
	h.is("good", "corp/ann", devRoles)
	if r := hello("bad", "a.b.c"); strings.Contains(r, "speculativeAuthenticate") || !strings.Contains(r, "ok: 1.0") {
		t.Error(r)
	}
	h.is("bad", "", "")
}

// TestOIDCExpires: with the token the login ends; the same user may log in again, and nobody else.
func TestOIDCExpires(t *testing.T) {
	h := newTokens(t)
	const must = `errmsg: "Command find requires reauthentication since the current authorization session has expired. Please re-auth.", code: 391, codeName: "ReauthenticationRequired"`
	h.start("1", externalDB, jwt(h.token("ann", "people")))
	h.clock.Advance(time.Hour - time.Second)
	if r := h.find("1"); !strings.Contains(r, "ok: 1.0") {
		t.Error(r)
	}
	h.clock.Advance(time.Second)
	for range 2 {
		if r := h.find("1"); !strings.Contains(r, must) {
			t.Error(r)
		}
	}
	h.is("1", "", "")
	if r := h.start("1", externalDB, jwt(h.token("bob", "people"))); !strings.Contains(r, "Expired user is corp/ann@$external") || !strings.Contains(r, "code: 7070100") {
		t.Error(r)
	}
	h.start("1", externalDB, jwt(h.token("ann", "people")))
	if r := h.find("1"); !strings.Contains(r, "ok: 1.0") {
		t.Error(r)
	}
	h.clock.Advance(time.Hour)
	if r := h.find("1"); !strings.Contains(r, must) {
		t.Error(r)
	}
	h.send(t.Context(), "1", externalDB, bson.MustDoc("{logout: 1}"))
	if r := h.find("1"); !strings.Contains(r, "requires authentication") {
		t.Error(r)
	}
	h.start("1", externalDB, jwt(h.token("bob", "people")))
	h.is("1", "corp/bob", devRoles)
}

// TestOIDCAgain: who logs in again while the first token is good is there as long as the second one is.
func TestOIDCAgain(t *testing.T) {
	h := newTokens(t)
	h.start("1", externalDB, jwt(h.token("ann", "people")))
	h.start("1", externalDB, jwt(h.token("ann", "people", "groups", "dev", "exp", h.clock.Now().Add(2*time.Hour).Unix())))
	h.clock.Advance(time.Hour)
	if r := h.find("1"); !strings.Contains(r, "ok: 1.0") {
		t.Error(r)
	}
	h.clock.Advance(time.Hour)
	if r := h.find("1"); !strings.Contains(r, "code: 391") {
		t.Error(r)
	}
}

// TestOIDCKeys: commands show and fetch keys; with a key what was vouched for by it goes.
func TestOIDCKeys(t *testing.T) {
	h := newTokens(t)
	h.start("1", externalDB, jwt(h.token("ann", "people")))
	h.server.Authorization = false
	keys := func() string { return h.run("admin", "{oidcListKeys: 1}").String() }
	if k := keys(); !strings.Contains(k, `keySets: { `+h.issuer.URL+`: { keys: [ { kid: "one", kty: "RSA", use: "sig", n: "`) {
		t.Error(k)
	}
	h.issuer.Down(true)
	if r := h.send(t.Context(), "setup", "admin", bson.MustDoc("{oidcRefreshKeys: 1, invalidateOnFailure: false}")).Body.String(); !strings.Contains(r, "OperationFailed") || !strings.Contains(keys(), `"one"`) {
		t.Error(r)
	}
	h.is("1", "corp/ann", devRoles)
	h.issuer.Down(false)
	h.issuer.Hide("one", true)
	h.run("admin", fmt.Sprintf(`{oidcRefreshKeys: 1, identityProviders: ["%s"]}`, h.issuer.URL))
	if k := keys(); !strings.Contains(k, "keys: []") {
		t.Error(k)
	}
	h.server.Authorization = true
	if r := h.find("1"); !strings.Contains(r, "code: 391") {
		t.Error(r)
	}
	h.server.Authorization = false
	for command, want := range map[string]string{
		`{oidcListKeys: 1, identityProviders: ["https://other"]}`:  "There is no identity provider",
		`{oidcRefreshKeys: 1, identityProviders: [1]}`:             "TypeMismatch",
		`{oidcRefreshKeys: 1, identityProviders: "https://other"}`: "TypeMismatch",
		`{oidcListKeys: 1, odd: 1}`:                                "unknown field",
	} {
		if r := h.send(t.Context(), "setup", "admin", bson.MustDoc(command)).Body.String(); !strings.Contains(r, want) {
			t.Error(command, r)
		}
	}
	off := newLogins(t)
	off.server.Authorization = false
	for _, command := range []string{"{oidcListKeys: 1}", "{oidcRefreshKeys: 1}"} {
		if r := off.send(t.Context(), "setup", "admin", bson.MustDoc(command)).Body.String(); !strings.Contains(r, "OIDC is not enabled on this node") {
			t.Error(r)
		}
	}
}

// TestOIDCOff: nobody logs in by a token where the parameters do not say so.
func TestOIDCOff(t *testing.T) {
	h := newTokens(t)
	without := newLogins(t)
	if err := without.server.Params.Lookup(mechanismsName).Set(bson.String("MONGODB-OIDC")); err != nil {
		t.Fatal(err)
	}
	if err := h.server.Params.Lookup(mechanismsName).Set(bson.String("SCRAM-SHA-256")); err != nil {
		t.Fatal(err)
	}
	for _, on := range []*tokens{h, {without, h.issuer}} {
		if r := on.start("1", externalDB, jwt(h.token("ann", "people"))); !strings.Contains(r, "MechanismUnavailable") {
			t.Error(r)
		}
	}
}

// TestOIDCPatience: a token that is not good is a failure of whom it names.
func TestOIDCPatience(t *testing.T) {
	h := newTokens(t)
	for range patience.Free + 1 {
		h.start("1", externalDB, jwt(h.token("ann", "people", "exp", 1)))
	}
	name := auth.Name{Name: "corp/ann", DB: externalDB}
	if w := h.server.patience.Wait(patience.From(address(""), name.String()), h.clock.Now()); w != patience.Least {
		t.Error(w)
	}
}
