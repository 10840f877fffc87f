package command

import (
	"slices"
	"strings"
	"testing"

	"github.com/ebbdb/ebb/internal/bson"
)

func TestConceal(t *testing.T) {
	c := &Command{Name: "createUser", Sensitive: []string{"pwd"}}
	for given, want := range map[string]string{
		`{createUser: "a", pwd: "secret", roles: []}`:             `{ createUser: "a", pwd: "xxx", roles: [] }`,
		`{createUser: "a", pwd: {x: "secret"}, pwd: "secret"}`:    `{ createUser: "a", pwd: "xxx", pwd: "xxx" }`,
		`{createUser: "a", customData: {pwd: "a user's choice"}}`: `{ createUser: "a", customData: { pwd: "a user's choice" } }`,
	} {
		if got := c.Conceal("admin", bson.MustDoc(given)).String(); got != want {
			t.Errorf("%s is shown as %s, not %s", given, got, want)
		}
	}
}

// TestSecretsAreSensitive finds commands whose fields carry secrets by the names that MongoDB has for them.
func TestSecretsAreSensitive(t *testing.T) {
	for name, fields := range map[string][]string{
		"createUser": {"pwd"}, "updateUser": {"pwd"}, "saslStart": {"payload"}, "saslContinue": {"payload"}, "authenticate": {"key", "nonce"},
		"hello": {"speculativeAuthenticate"}, "isMaster": {"speculativeAuthenticate"},
	} {
		c := commands()[name]
		if c == nil {
			continue // which the server does not know
		}
		for _, f := range fields {
			if !slices.Contains(c.Sensitive, f) {
				t.Errorf("%s does not say that %s is sensitive", name, f)
			}
		}
	}
}

// TestSecretsAreNotShown has the profiler, which shows what currentOp and the slow log show, look at a command with a secret.
func TestSecretsAreNotShown(t *testing.T) {
	h := newHarness(t)
	h.server.table["find"].Sensitive = []string{"comment"}
	for _, text := range []string{`{profile: 2}`, `{find: "c", comment: "hunter2"}`, `{profile: 0}`} {
		h.send(t.Context(), "1", "test", bson.MustDoc(text))
	}
	shown := h.send(t.Context(), "1", "test", bson.MustDoc(`{find: "system.profile"}`)).Body.String()
	if strings.Contains(shown, "hunter2") || !strings.Contains(shown, `comment: "xxx"`) {
		t.Error(shown)
	}
}

// TestWrittenCredentialsAreNotShown: what is written to where credentials are kept is no more shown than a password, nor are secrets of commands
// in commands.
func TestWrittenCredentialsAreNotShown(t *testing.T) {
	for _, text := range []string{
		`{insert: "system.users", documents: [{_id: 1, credentials: "hunter2"}]}`,
		`{insert: "tempusers", documents: [{_id: 1, credentials: "hunter2"}]}`,
		`{insert: "system.backup_users", documents: [{_id: 1, credentials: "hunter2"}]}`,
		`{update: "system.users", updates: [{q: {_id: 1}, u: {$set: {credentials: "hunter2"}}}]}`,
		`{update: "system.users", updates: [{q: {_id: 1}, u: [{$set: {credentials: "$$c"}}], c: {c: "hunter2"}}]}`,
		`{update: "system.users", updates: [{q: {_id: 1}, u: [{$set: {credentials: "$$c"}}]}], let: {c: "hunter2"}}`,
		`{findAndModify: "system.users", query: {_id: 1}, update: {credentials: "hunter2"}}`,
		`{findandmodify: "system.users", query: {_id: 1}, update: {credentials: "hunter2"}}`,
		`{bulkWrite: 1, ops: [{insert: 0, document: {credentials: "hunter2"}}, {update: 0, filter: {_id: 1}, updateMods: {$set: {credentials: "hunter2"}}}], nsInfo: [{ns: "admin.system.users"}]}`,
		`{explain: {update: "system.users", updates: [{q: {_id: 1}, u: {$set: {credentials: "hunter2"}}}]}}`,
		`{explain: {createUser: "u", pwd: "hunter2", roles: []}}`,
		`{explain: {explain: {createUser: "u", pwd: "hunter2", roles: []}}}`,
		`{explain: {explain: {explain: {updateUser: "u", pwd: "hunter2"}}}}`,
		`{explain: 1, explain: {createUser: "u", pwd: "hunter2", roles: []}}`,
		`{applyOps: [{op: "c", ns: "admin.$cmd", o: {createUser: "u", pwd: "hunter2", roles: []}}]}`,
		`{applyOps: [{op: "c", ns: "admin.$cmd", o: {applyOps: [{op: "c", ns: "admin.$cmd", o: {updateUser: "u", pwd: "hunter2"}}]}}]}`,
		`{applyOps: [{op: "i", ns: "admin.system.users", o: {_id: 2, credentials: "hunter2"}}]}`,
		`{aggregate: 1, pipeline: [{$documents: [{_id: 1, credentials: "hunter2"}]}, {$merge: "system.users"}], cursor: {}}`,
		`{aggregate: 1, pipeline: [{$documents: [{_id: 1, credentials: "hunter2"}]}, {$merge: {into: {db: "admin", coll: "tempusers"}}}], cursor: {}}`,
		`{aggregate: "c", pipeline: [{$set: {credentials: "$$c"}}, {$out: {db: "admin", coll: "system.users"}}], let: {c: "hunter2"}, cursor: {}}`,
		`{aggregate: "c", pipeline: [{$set: {credentials: "hunter2"}}, {$out: "system.users"}, {$limit: 1}], cursor: {}}`,
		`{explain: {aggregate: "c", pipeline: [{$set: {credentials: "hunter2"}}, {$out: "system.users"}], cursor: {}}}`,
		`{mapReduce: "c", map: "function() { emit(1, 'hunter2') }", reduce: "function() { return 'hunter2' }", out: "system.users"}`,
		`{mapreduce: "c", map: "function() { emit(1, s) }", reduce: "function() { return s }", scope: {s: "hunter2"}, out: {merge: "tempusers", db: "admin"}}`,
		`{setQuerySettings: {createUser: "u", pwd: "hunter2"}, settings: {}}`,
		`{setParameter: 1, ldapQueryPasword: "hunter2"}`,
		`{setParameter: 1, logLevel: 0, tlsKeyPassword: {a: "hunter2"}}`,
		`{explain: {setParameter: 1, tlsKeyPassword: "hunter2"}}`,
		`{createUser: "u", password: "hunter2", roles: []}`,
		`{updateUser: "u", pwd: "hunter1", Pwd: "hunter2"}`,
	} {
		h := newHarness(t)
		h.must("1", "admin", `{profile: 2}`)
		h.send(t.Context(), "1", "admin", bson.MustDoc(text))
		h.must("1", "admin", `{profile: 0}`)
		shown := h.must("1", "admin", `{find: "system.profile"}`).String()
		if strings.Contains(shown, "hunter2") || strings.Count(shown, `"xxx"`) == 0 {
			t.Errorf("%s is shown as %s", text, shown)
		}
	}
}

// What goes elsewhere is shown.
func TestWritesAreShown(t *testing.T) {
	all := commands()
	for _, c := range []struct{ db, text string }{
		{"test", `{ insert: "system.users", documents: [ { a: 1 } ] }`},
		{"admin", `{ insert: "c", documents: [ { a: 1 } ] }`},
		{"admin", `{ bulkWrite: 1, ops: [ { insert: 0, document: { a: 1 } } ], nsInfo: [ { ns: "test.c" } ] }`},
		{"test", `{ aggregate: "c", pipeline: [ { $merge: "system.users" } ] }`},
		{"admin", `{ aggregate: "c", pipeline: [ { $merge: { into: { db: "test", coll: "system.users" } } }, 1, { $out: 1 } ] }`},
		{"admin", `{ mapReduce: "c", map: "m", reduce: "r", out: { replace: "system.users", db: "test" } }`},
		{"admin", `{ mapReduce: "c", map: "m", reduce: "r", out: { inline: 1 } }`},
	} {
		d := bson.MustDoc(c.text)
		if got := all[d.FirstKey()].Conceal(c.db, d).String(); got != c.text {
			t.Errorf("%s is shown as %s", c.text, got)
		}
	}
	if d := bson.MustDoc(`{applyOps: [{op: "i", ns: "test.c", o: {pwd: "a user's choice"}}]}`); all.holdsSecrets(d.Value()) {
		t.Error(d)
	}
}

// TestMergedCredentialsAreNotShown: a pipeline of another database writes to users as well.
func TestMergedCredentialsAreNotShown(t *testing.T) {
	d := bson.MustDoc(`{aggregate: 1, pipeline: [{$documents: [{_id: 1, pwd: "hunter2"}]}, {$merge: {into: {db: "admin", coll: "system.users"}}}], cursor: {}}`)
	if got := commands()["aggregate"].Conceal("test", d).String(); got != `{ aggregate: 1, pipeline: "xxx", cursor: {} }` {
		t.Error(got)
	}
}

// TestErrorsOfCredentialsAreNotShown: the error of a write to where credentials are kept quotes what is there, or what was to be written.
func TestErrorsOfCredentialsAreNotShown(t *testing.T) {
	for _, text := range []string{
		`{update: "system.users", updates: [{q: {_id: 1}, u: {$set: {"credentials.key.x": 1}}}]}`,
		`{update: "system.users", updates: [{q: {_id: 1}, u: {$set: "hunter2"}}]}`,
		`{update: "system.users", updates: [{q: {_id: 1}, u: [{$set: {x: {$toInt: "$credentials.key"}}}]}]}`,
		`{findAndModify: "system.users", query: {_id: 1}, update: {$set: {"credentials.key.x": 1}}}`,
		`{findAndModify: "system.users", query: {_id: 1}, update: {$set: "hunter2"}}`,
		`{bulkWrite: 1, ops: [{update: 0, filter: {_id: 1}, updateMods: {$set: {"credentials.key.x": 1}}}], nsInfo: [{ns: "admin.system.users"}]}`,
		`{bulkWrite: 1, ops: [{update: 0, filter: {_id: 1}, updateMods: {$set: "hunter2"}}], nsInfo: [{ns: "admin.system.users"}]}`,
		`{aggregate: 1, pipeline: [{$documents: [{_id: 1, x: {$toInt: "hunter2"}}]}, {$merge: "system.users"}], cursor: {}}`,
		`{explain: {update: "system.users", updates: [{q: {_id: 1}, u: {$set: "hunter2"}}]}}`,
	} {
		h := newHarness(t)
		h.must("1", "admin", `{insert: "system.users", documents: [{_id: 1, credentials: {key: "hunter2"}}]}`)
		h.must("1", "admin", `{profile: 2}`)
		h.send(t.Context(), "1", "admin", bson.MustDoc(text))
		h.must("1", "admin", `{profile: 0}`)
		shown := h.must("1", "admin", `{find: "system.profile"}`).String()
		if strings.Contains(shown, "hunter2") || !strings.Contains(shown, `errMsg: "xxx"`) {
			t.Errorf("%s is shown as %s", text, shown)
		}
	}
}

// symbols is a value in which names of where users are kept are symbols.
func symbols(v bson.Value) bson.Value {
	switch {
	case v.Type == bson.TypeString && strings.HasSuffix(v.Str(), "system.users"):
		return bson.Symbol(v.Str())
	case v.Type != bson.TypeObject && v.Type != bson.TypeArray:
		return v
	}
	b := bson.Build()
	for it := v.Doc().Iter(); it.Next(); {
		b.Value(it.Key(), symbols(it.Value()))
	}
	return bson.Value{Type: v.Type, Data: b.Doc()}
}

// TestCredentialsWrittenBySymbolsAreNotShown: a symbol names a collection as a string does.
func TestCredentialsWrittenBySymbolsAreNotShown(t *testing.T) {
	for _, text := range []string{
		`{insert: "system.users", documents: [{_id: 1, credentials: "hunter2"}]}`,
		`{update: "system.users", updates: [{q: {_id: 1}, u: {$set: {credentials: "hunter2"}}}]}`,
		`{findAndModify: "system.users", query: {_id: 1}, update: {credentials: "hunter2"}}`,
		`{aggregate: 1, pipeline: [{$documents: [{_id: 1, credentials: "hunter2"}]}, {$merge: {into: "system.users"}}], cursor: {}}`,
		`{aggregate: 1, pipeline: [{$documents: [{_id: 1, credentials: "hunter2"}]}, {$out: "system.users"}], cursor: {}}`,
		`{mapReduce: "c", map: "function() { emit(1, 'hunter2') }", reduce: "function() { return 'hunter2' }", out: "system.users"}`,
		`{bulkWrite: 1, ops: [{insert: 0, document: {credentials: "hunter2"}}], nsInfo: [{ns: "admin.system.users"}]}`,
		`{explain: {update: "system.users", updates: [{q: {_id: 1}, u: {$set: {credentials: "hunter2"}}}]}}`,
		`{applyOps: [{op: "i", ns: "admin.system.users", o: {_id: 2, credentials: "hunter2"}}]}`,
	} {
		h := newHarness(t)
		h.must("1", "admin", `{profile: 2}`)
		h.send(t.Context(), "1", "admin", symbols(bson.MustDoc(text).Value()).Doc())
		h.must("1", "admin", `{profile: 0}`)
		shown := h.must("1", "admin", `{find: "system.profile"}`).String()
		if strings.Contains(shown, "hunter2") || strings.Count(shown, `"xxx"`) == 0 {
			t.Errorf("%s is shown as %s", text, shown)
		}
	}
}
