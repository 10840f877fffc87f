package command

import (
	"strings"
	"testing"

	"github.com/ebbdb/ebb/internal/auth"
	"github.com/ebbdb/ebb/internal/bson"
	"github.com/ebbdb/ebb/internal/certificate"
	"github.com/ebbdb/ebb/internal/parameter"
)

// TestLoginByCertificate: who a client is by its certificate, what it is told where it is nobody, and that a hello may ask.
func TestLoginByCertificate(t *testing.T) {
	const ann, member = "CN=ann,OU=clients,O=Ebb", "CN=member,OU=members,O=Ebb"
	h := newHarness(t)
	who := people{}
	for _, n := range []string{ann, member} {
		name := auth.Name{Name: n, DB: externalDB}
		who[name] = &auth.User{Name: name}
	}
	h.server.Users = who
	const failed = "18 AuthenticationFailed: Authentication failed."
	for _, c := range []struct {
		what    string
		peer    *certificate.Peer
		db      string
		command string
		want    string
		cluster bool
		user    string
	}{
		{"its own name", &certificate.Peer{Subject: ann}, "$external", `{authenticate: 1, mechanism: "MONGODB-X509", user: "` + ann + `"}`, `{ dbname: "$external", user: "` + ann + `", ok: 1.0 }`, false, ann},
		{"no name", &certificate.Peer{Subject: ann}, "$external", `{authenticate: 1, mechanism: "MONGODB-X509"}`, `{ dbname: "$external", user: "` + ann + `", ok: 1.0 }`, false, ann},
		{"another's name", &certificate.Peer{Subject: ann}, "$external", `{authenticate: 1, mechanism: "MONGODB-X509", user: "CN=bob"}`, failed, false, ""},
		{"no certificate", nil, "$external", `{authenticate: 1, mechanism: "MONGODB-X509", user: "` + ann + `"}`, failed, false, ""},
		{"a certificate without a name", &certificate.Peer{}, "$external", `{authenticate: 1, mechanism: "MONGODB-X509"}`, failed, false, ""},
		{"another database", &certificate.Peer{Subject: ann}, "admin", `{authenticate: 1, mechanism: "MONGODB-X509"}`, "17 ProtocolError: X.509 authentication must always use the $external database.", false, ""},
		{"a certificate with roles", &certificate.Peer{Subject: "CN=bob", Roles: []certificate.Role{{Name: "read", DB: "d"}}}, "$external", `{authenticate: 1, mechanism: "MONGODB-X509"}`, `{ dbname: "$external", user: "CN=bob", ok: 1.0 }`, false, "CN=bob"},
		{"no such user", &certificate.Peer{Subject: "CN=bob"}, "$external", `{authenticate: 1, mechanism: "MONGODB-X509"}`, "11 UserNotFound: Could not find user CN=bob@$external", false, ""},
		{"a member", &certificate.Peer{Subject: member, Member: true}, "$external", `{authenticate: 1, mechanism: "MONGODB-X509"}`, `{ dbname: "$external", user: "` + member + `", ok: 1.0 }`, true, "__system"},
		{"a member where members have keys", &certificate.Peer{Subject: member, Member: true}, "$external", `{authenticate: 1, mechanism: "MONGODB-X509"}`, failed, false, ""},
		{"another mechanism", &certificate.Peer{Subject: ann}, "$external", `{authenticate: 1, mechanism: "MONGODB-CR", user: "x", nonce: "y", key: "z"}`, failed, false, ""},
		{"no mechanism", &certificate.Peer{Subject: ann}, "$external", `{authenticate: 1}`, "40414 IDLFailedToParse: BSON field 'authenticate.mechanism' is missing but a required field", false, ""},
		{"a hello", &certificate.Peer{Subject: ann}, "admin", `{hello: 1, speculativeAuthenticate: {authenticate: 1, mechanism: "MONGODB-X509", db: "$external"}}`, `speculativeAuthenticate: { dbname: "$external", user: "` + ann + `" }`, false, ann},
		{"a hello of nobody", &certificate.Peer{Subject: "CN=bob"}, "admin", `{hello: 1, speculativeAuthenticate: {authenticate: 1, mechanism: "MONGODB-X509"}}`, `readOnly: false, ok: 1.0`, false, ""},
	} {
		h.server.ClusterAuth = NewClusterAuth(ClusterAuthKeyFile)
		if c.cluster {
			h.server.ClusterAuth = NewClusterAuth(ClusterAuthX509)
		}
		conn := h.server.Connect(99, "127.0.0.1:50099", "127.0.0.1:27018")
		conn.Peer = func() *certificate.Peer { return c.peer }
		got := h.sendOn(t.Context(), conn, c.db, bson.MustDoc(c.command)).Body
		text := got.Value().String()
		if code := got.Lookup("code"); !code.IsMissing() {
			text = code.String() + " " + got.Lookup("codeName").Str() + ": " + got.Lookup("errmsg").Str()
		}
		if !strings.Contains(text, c.want) || strings.Contains(text, "speculativeAuthenticate") != strings.Contains(c.want, "speculativeAuthenticate") {
			t.Errorf("%s: %s\nwant %s", c.what, text, c.want)
		}
		if u := conn.user.Load(); (u == nil) != (c.user == "") || u != nil && u.Name.Name != c.user {
			t.Errorf("%s: logged in is %+v", c.what, u)
		}
		h.sendOn(t.Context(), conn, "admin", bson.MustDoc(`{logout: 1}`))
		if u := conn.user.Load(); (u == nil) != (c.user == "") {
			t.Errorf("%s: logged in is %+v after the logout of another database", c.what, u)
		}
		if h.sendOn(t.Context(), conn, "$external", bson.MustDoc(`{logout: 1}`)); c.user != "__system" && conn.user.Load() != nil {
			t.Errorf("%s: still logged in after logout", c.what)
		}
		h.server.Disconnect(conn)
	}
}

// TestMembersMayDoEverything: what a member's certificate gives is all that there is to do.
func TestMembersMayDoEverything(t *testing.T) {
	h := newHarness(t)
	h.server.Authorization = true
	h.server.ClusterAuth, h.server.Users = NewClusterAuth(ClusterAuthX509), people{}
	conn := h.conn("1")
	conn.Peer = func() *certificate.Peer { return &certificate.Peer{Subject: "CN=member", Member: true} }
	if got := h.send(t.Context(), "1", "admin", bson.MustDoc(`{serverStatus: 1}`)).Body; got.Lookup("code").Int32() != 13 {
		t.Error(got.Value())
	}
	h.send(t.Context(), "1", "$external", bson.MustDoc(`{authenticate: 1, mechanism: "MONGODB-X509"}`))
	for db, command := range map[string]string{"admin": `{serverStatus: 1}`, "d": `{insert: "c", documents: [{}]}`, "local": `{find: "c"}`} {
		if got := h.send(t.Context(), "1", db, bson.MustDoc(command)).Body; got.Lookup("ok").Double() != 1 {
			t.Errorf("%s: %v", command, got.Value())
		}
	}
}

// TestNoCollectionsInExternal: the database has users, and commands about data find it no database.
func TestNoCollectionsInExternal(t *testing.T) {
	h := newHarness(t)
	for _, command := range []string{`{insert: "c", documents: [{}]}`, `{create: "c"}`, `{createIndexes: "c", indexes: [{key: {a: 1}, name: "a"}]}`,
		`{update: "c", updates: [{q: {}, u: {a: 1}, upsert: true}]}`, `{aggregate: "c", pipeline: [{$out: "d"}], cursor: {}}`} {
		reply := h.send(t.Context(), "1", "$external", bson.MustDoc(command)).Body
		if got := reply.Lookup("code"); got.IsMissing() && reply.Lookup("writeErrors").IsMissing() {
			t.Errorf("%s: %v", command, reply.Value())
		}
	}
	if got := h.send(t.Context(), "1", "admin", bson.MustDoc(`{listDatabases: 1, nameOnly: true}`)).Body.Value().String(); strings.Contains(got, "external") {
		t.Error(got)
	}
}

// TestRolesOfCertificates: roles that a certificate gives count only where they may.
func TestRolesOfCertificates(t *testing.T) {
	h := newHarness(t)
	h.server.Users = people{}
	for allowed, want := range map[string]bool{"true": true, "false": false} {
		if _, err := h.server.Params.Set(certificateRolesName, bson.String(allowed), parameter.Startup); err != nil {
			t.Fatal(err)
		}
		conn := h.server.Connect(99, "127.0.0.1:50099", "127.0.0.1:27018")
		conn.Peer = func() *certificate.Peer {
			return &certificate.Peer{Subject: "CN=bob", Roles: []certificate.Role{{Name: "read", DB: "d"}}}
		}
		if got := h.sendOn(t.Context(), conn, externalDB, bson.MustDoc(`{authenticate: 1, mechanism: "MONGODB-X509"}`)).Body; got.Lookup("ok").Truthy() != want {
			t.Errorf("%s: %s", allowed, got.Value())
		}
		h.server.Disconnect(conn)
	}
}
