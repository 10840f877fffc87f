package command

import (
	"bytes"
	"encoding/base64"
	"errors"
	"os"
	"strings"
	"testing"

	"github.com/ebbdb/ebb/internal/audit"
	"github.com/ebbdb/ebb/internal/auth/scram"
	"github.com/ebbdb/ebb/internal/bson"
	"github.com/ebbdb/ebb/internal/kv"
	"github.com/ebbdb/ebb/internal/parameter"
	"github.com/ebbdb/ebb/internal/serverlog"
)

// told is a harness all of whose commands are in the log, which is at its most talkative, and profiled.
func told(t *testing.T, h *harness) *bytes.Buffer {
	t.Helper()
	var log bytes.Buffer
	l := serverlog.New(&log, 5)
	h.server.Log, h.server.AccessLog = l.For("COMMAND"), l.For("ACCESS")
	AddRedaction(h.server.Params, l.SetRedaction)
	for _, db := range []string{"admin", "test"} {
		if r := h.send(t.Context(), "setup", db, bson.MustDoc(`{profile: 2, slowms: -1}`)).Body; !r.Lookup("ok").Truthy() {
			t.Fatal(r)
		}
	}
	return &log
}

func profiled(t *testing.T, h *harness, db string) string {
	t.Helper()
	return h.send(t.Context(), "setup", db, bson.MustDoc(`{find: "system.profile", batchSize: 10000}`)).Body.String()
}

func TestRedact(t *testing.T) {
	got := redact(bson.MustDoc(`{find: "c", filter: {a: [1, {b: "x"}]}, $db: "test", empty: {}}`)).String()
	if got != `{ find: "###", filter: { a: [ "###", { b: "###" } ] }, $db: "###", empty: {} }` {
		t.Error(got)
	}
}

// TestRedaction: what clients have in their documents, and look for in others, is not in the log, nor in what is profiled.
func TestRedaction(t *testing.T) {
	for _, redacts := range []bool{false, true} {
		h := newHarness(t)
		log := told(t, h)
		if redacts {
			h.send(t.Context(), "setup", "admin", bson.MustDoc(`{setParameter: 1, redactClientLogData: true}`))
		}
		for _, command := range []string{
			`{insert: "c", documents: [{_id: 1, key: "hunter2"}, {_id: 2, key: "hunter2"}, {_id: 3, key: "hunter2"}]}`,
			`{find: "c", filter: {key: "hunter2"}}`,
			`{find: "c", filter: {key: {$gt: "hunter2"}, $or: [{a: "hunter2"}, {b: "hunter2"}]}, sort: {a: 1}}`,
			`{update: "c", updates: [{q: {key: "hunter2"}, u: {$set: {other: "hunter2"}}, multi: true}]}`,
			`{createIndexes: "c", indexes: [{key: {key: 1}, name: "k", unique: true}]}`,
			`{createIndexes: "c", indexes: [{key: {one: 1}, name: "one", unique: true}]}`,
			`{insert: "c", documents: [{_id: 4, one: "hunter2"}, {_id: 5, one: "hunter2"}]}`,
			`{aggregate: "c", pipeline: [{$match: {key: "hunter2"}}], cursor: {batchSize: 1}, comment: "hunter2"}`,
			`{findAndModify: "c", query: {key: "hunter2"}, update: {$set: {key: "hunter2 again"}}}`,
			`{distinct: "c", key: "key", query: {key: {$ne: "hunter2"}}}`,
			`{delete: "c", deletes: [{q: {key: "hunter2"}, limit: 0}]}`,
			`{find: "c", filter: {$expr: {$none: "hunter2"}}}`,
		} {
			r := h.send(t.Context(), "1", "test", bson.MustDoc(command)).Body
			if id := r.Lookup("cursor"); id.Type == bson.TypeObject && id.Doc().Lookup("id").Int64() != 0 {
				h.send(t.Context(), "1", "test", bson.Build().Value("getMore", id.Doc().Lookup("id")).String("collection", "c").Doc())
			}
		}
		for what, text := range map[string]string{"log": log.String(), "profile": profiled(t, h, "test")} {
			if strings.Contains(text, "hunter2") == redacts {
				at := max(strings.Index(text, "hunter2"), 0)
				t.Errorf("redacts %v: the %s has %.1000s", redacts, what, text[max(at-500, 0):])
			}
			if !strings.Contains(text, "filter") || !strings.Contains(text, "key") {
				t.Errorf("redacts %v: the %s does not tell of fields: %.1000s", redacts, what, text)
			}
		}
	}
}

// TestPanicsAreRedacted: what somebody panics with may be a document, or a secret.
func TestPanicsAreRedacted(t *testing.T) {
	for _, c := range []struct {
		redacts bool
		command string
		want    bool
	}{
		{false, `{find: "c"}`, true}, {true, `{find: "c"}`, false}, {false, `{createUser: "ann", pwd: "x", roles: []}`, false},
	} {
		h := newHarness(t)
		log := told(t, h)
		h.send(t.Context(), "setup", "admin", bson.Build().Int32("setParameter", 1).Bool(redactName, c.redacts).Doc())
		row := h.server.table[bson.MustDoc(c.command).FirstKey()]
		row.Run = func(*Op) (bson.Doc, error) { panic(errors.New("hunter2")) }
		r := h.send(t.Context(), "1", "test", bson.MustDoc(c.command)).Body.String()
		if strings.Contains(log.String(), "hunter2") != c.want || !strings.Contains(log.String(), "operation panicked") || strings.Contains(r, "hunter2") {
			t.Errorf("%+v: %s\n%s", c, r, log)
		}
	}
}

// TestSecretsAreNowhere has clients say passwords in each way that there is, and looks for them in all that anybody may read afterwards.
func TestSecretsAreNowhere(t *testing.T) {
	h := newAudited(t, newHarnessAs(t, nil, func(e kv.Engine) kv.Engine { return e }, func(p *parameter.Registry) {
		if _, err := p.Set(mechanismsName, bson.String("PLAIN,SCRAM-SHA-1,SCRAM-SHA-256"), parameter.Startup); err != nil {
			t.Fatal(err)
		}
	}), audit.Options{})
	h.server.Authorization = false
	log := told(t, h.harness)
	h.run("admin", `{setParameter: 1, auditAuthorizationSuccess: true}`)
	h.server.Authorization = true
	plain := []byte("\x00ann\x00hunter2")
	var replies strings.Builder
	payload := func(command string) bson.Doc {
		return bson.Build().Fields(bson.MustDoc(command)).Binary("payload", 0, plain).Doc()
	}
	for _, user := range []string{"boss", "nobody"} {
		for _, command := range []bson.Doc{
			bson.MustDoc(`{createUser: "ann", pwd: "hunter2", roles: []}`),
			bson.MustDoc(`{createUser: "ann", pwd: "hunter2", roles: []}`),
			bson.MustDoc(`{createUser: "bob", pwd: {hunter2: "hunter2"}, roles: []}`),
			bson.MustDoc(`{createUser: "bob", pwd: ["hunter2"], roles: []}`),
			bson.MustDoc(`{createUser: "bob", pwd: "hunter2", roles: ["none"]}`),
			bson.MustDoc(`{createUser: "bob", pwd: "hunter2", pwd: "hunter2", roles: []}`),
			bson.MustDoc(`{createUser: "bob", pwd: "hunter2", mechanisms: ["none"], roles: []}`),
			bson.MustDoc(`{createUser: "bob", pwd: "hunter2", digestPassword: false, mechanisms: ["SCRAM-SHA-256"], roles: []}`),
			bson.MustDoc(`{updateUser: "ann", pwd: "hunter2"}`),
			bson.MustDoc(`{updateUser: "carl", pwd: "hunter2"}`),
			bson.MustDoc(`{explain: {createUser: "ann", pwd: "hunter2", roles: []}}`),
			bson.MustDoc(`{explain: {updateUser: "ann", pwd: "hunter2"}, verbosity: "queryPlanner"}`),
			bson.MustDoc(`{usersInfo: "ann", showCredentials: true}`),
			payload(`{saslStart: 1, mechanism: "PLAIN"}`),
			payload(`{saslStart: 1, mechanism: "SCRAM-SHA-256"}`),
			payload(`{saslStart: 1, mechanism: "NONE"}`),
			payload(`{saslContinue: 1, conversationId: 1}`),
			bson.Build().Fields(bson.MustDoc(`{saslStart: 1, mechanism: "PLAIN"}`)).String("payload", base64.StdEncoding.EncodeToString(plain)).Doc(),
			bson.Build().Int32("hello", 1).Document("speculativeAuthenticate", payload(`{saslStart: 1, mechanism: "PLAIN", db: "$external"}`)).Doc(),
			bson.MustDoc(`{authenticate: 1, mechanism: "MONGODB-CR", user: "ann", nonce: "hunter2", key: "hunter2"}`),
		} {
			replies.WriteString(h.send(t.Context(), user, "test", command).Body.String() + "\n")
		}
	}
	talker{h: h.logins, conn: "2", db: "test", mechanism: scram.SHA256, user: "ann", pwd: "hunter2"}.login()
	talker{h: h.logins, conn: "3", db: "test", mechanism: scram.SHA1, user: "ann", pwd: "hunter2", speculate: true}.login()
	talker{h: h.logins, conn: "4", db: "test", mechanism: scram.SHA256, user: "ann", pwd: "hunter2 but wrong"}.login()
	audited, err := os.ReadFile(h.path)
	if err != nil {
		t.Fatal(err)
	}
	h.server.Authorization = false
	for what, text := range map[string]string{
		"log": log.String(), "audit log": string(audited), "admin's profile": profiled(t, h.harness, "admin"), "test's profile": profiled(t, h.harness, "test"), "replies": replies.String(),
		"currentOp": h.run("admin", `{currentOp: 1, $all: true}`).String(),
	} {
		for _, secret := range []string{"hunter2", base64.StdEncoding.EncodeToString(plain), digest("ann", "hunter2")} {
			if at := strings.Index(text, secret); at >= 0 {
				t.Errorf("%s: %s", what, text[max(at-300, 0):min(at+100, len(text))])
			}
		}
		if what != "currentOp" && what != "admin's profile" && !strings.Contains(text, "ann") {
			t.Errorf("%s says nothing of those commands: %.300s", what, text)
		}
	}
}
