package command

import (
	"context"
	"testing"

	"github.com/ebbdb/ebb/internal/bson"
	"github.com/ebbdb/ebb/internal/mongoerr"
)

// TestIndexBuildWithoutClient: an index whose client has gone is not built, and can be built anew.
func TestIndexBuildWithoutClient(t *testing.T) {
	h := newHarness(t)
	command := func(ctx context.Context, text string) bson.Doc {
		return h.send(ctx, "a", "test", bson.MustDoc(text)).Body
	}
	if r := command(t.Context(), "{insert: 'c', documents: [{_id: 1, a: 1}, {_id: 2, a: 2}]}"); !r.Lookup("ok").Truthy() {
		t.Fatal(r)
	}
	build := "{createIndexes: 'c', indexes: [{key: {a: 1}, name: 'a_1'}]}"
	gone, hangUp := context.WithCancelCause(t.Context())
	hangUp(mongoerr.New(mongoerr.ClientDisconnect, "the client is gone"))
	if r := command(gone, build); r.Lookup("codeName").Str() != "ClientDisconnect" {
		t.Error(r)
	}
	indexes := func() int {
		n := 0
		for it := command(t.Context(), "{listIndexes: 'c'}").Lookup("cursor").Doc().Lookup("firstBatch").Doc().Iter(); it.Next(); {
			n++
		}
		return n
	}
	if n := indexes(); n != 1 {
		t.Errorf("%d indexes without the client", n)
	}
	if r := command(t.Context(), build); !r.Lookup("ok").Truthy() || indexes() != 2 {
		t.Error(r)
	}
}
