package command

import (
	"fmt"
	"testing"
)

// TestSequences sends commands with a document sequence, which a command takes or refuses, and never passes over.
func TestSequences(t *testing.T) {
	g := newCastle(t, newHarness(t))
	g.user("writer", roleIn("readWrite", "own"))
	for _, c := range []struct{ command, name, document, want string }{
		{`{insert: "c"}`, "documents", `{_id: 1}`, "ok"},
		{`{update: "c"}`, "updates", `{q: {}, u: {$set: {a: 1}}}`, "ok"},
		{`{delete: "c"}`, "deletes", `{q: {}, limit: 1}`, "ok"},
		{`{insert: "c", documents: [{}]}`, "updates", `{_id: 1}`, "40415 BSON field 'insert.updates' is an unknown field."},
		{`{update: "c", updates: []}`, "let", `{_id: 1}`, "40415 BSON field 'update.let' is an unknown field."},
		{`{find: "c"}`, "filter", `{_id: 1}`, "40472 The find command does not support document sequences."},
		{`{aggregate: "c", cursor: {}}`, "pipeline", `{_id: 1}`, "40472 The aggregate command does not support document sequences."},
		{`{explain: {update: "c"}}`, "updates", `{_id: 1}`, "40472 The explain command does not support document sequences."},
	} {
		reply := g.sequence("writer", c.command, c.name, c.document)
		got := "ok"
		if !reply.Lookup("ok").Truthy() {
			got = fmt.Sprint(reply.Lookup("code").AsDouble(), " ", reply.Lookup("errmsg").Str())
		}
		if got != c.want {
			t.Errorf("%s with %s: %s", c.command, c.name, got)
		}
	}
}
