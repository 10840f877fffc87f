package command

import (
	"context"
	"testing"

	"github.com/ebbdb/ebb/internal/bson"
	"github.com/ebbdb/ebb/internal/mongoerr"
)

// TestIndexBuildWithoutClient: an index whose client has gone is built, unless the server ends.
func TestIndexBuildWithoutClient(t *testing.T) {
	h := newHarness(t)
	h.must("a", "test", "{insert: 'c', documents: [{_id: 1, a: 1}, {_id: 2, a: 2}]}")
	indexes := func() int {
		n := 0
		for it := h.must("a", "test", "{listIndexes: 'c'}").Lookup("cursor").Doc().Lookup("firstBatch").Doc().Iter(); it.Next(); {
			n++
		}
		return n
	}
	gone, hangUp := context.WithCancelCause(t.Context())
	hangUp(mongoerr.New(mongoerr.ClientDisconnect, "the client is gone"))
	ended, end := context.WithCancelCause(t.Context())
	end(mongoerr.New(mongoerr.InterruptedAtShutdown, "interrupted at shutdown"))
	for _, c := range []struct {
		command string
		lasting context.Context
		want    string
		indexes int
	}{
		{"{createIndexes: 'c', indexes: [{key: {a: 1}, name: 'a_1'}]}", ended, "InterruptedAtShutdown", 1},
		{"{createIndexes: 'c', indexes: [{key: {a: 1}, name: 'a_1'}]}", t.Context(), "", 2},
		{"{find: 'c', filter: {a: 1}}", t.Context(), "ClientDisconnect", 2},
		{"{update: 'c', updates: [{q: {a: 1}, u: {$set: {b: 1}}, multi: true}]}", t.Context(), "ClientDisconnect", 2}, // difference 101
	} {
		body := bson.Build().Fields(bson.MustDoc(c.command)).String("$db", "test").Doc()
		reply := h.server.Handle(gone, h.conn("b"), Request{Body: body, Lasting: c.lasting}).Body
		got := ""
		if name := reply.Lookup("codeName"); !name.IsMissing() {
			got = name.Str()
		}
		if got != c.want || indexes() != c.indexes {
			t.Errorf("%s: %s, and there are %d indexes", c.command, reply, indexes())
		}
	}
}
