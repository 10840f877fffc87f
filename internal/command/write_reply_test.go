package command

import (
	"strings"
	"testing"

	"github.com/ebbdb/ebb/internal/bson"
)

// A thousand refused documents with long keys fit into one reply, and each has its index and code.
func TestErrorsWithLongKeysFitIntoAReply(t *testing.T) {
	notOnTiKV(t, "TiKV takes no keys above 8 KiB")
	h := newHarness(t)
	key := strings.Repeat("k", 100<<10)
	if reply := h.send(t.Context(), "1", "test", bson.Build().String("insert", "c").Array("documents").Object("0").String("_id", key).End().End().Doc()).Body; !reply.Lookup("ok").Truthy() {
		t.Fatal(reply.Text())
	}
	b := bson.Build().String("insert", "c").Bool("ordered", false).Array("documents")
	for i := range 300 {
		b.Object(bson.IndexKey(i)).String("_id", key).End()
	}
	reply := h.send(t.Context(), "1", "test", b.End().Doc()).Body
	errors := reply.Lookup("writeErrors").Doc()
	if len(reply) > bson.MaxDocSize || errors.Count() != 300 {
		t.Fatal(len(reply), errors.Count())
	}
	first, last := errors.Index(0).Doc(), errors.Index(299).Doc()
	if first.Lookup("keyValue").Doc().Lookup("_id").Str() != key || last.Lookup("index").Int32() != 299 || last.Lookup("code").Int32() != 11000 {
		t.Error(last.Text())
	}
}

func TestMergeTellsTheKeyThatIsTaken(t *testing.T) {
	h := newHarness(t)
	for _, command := range []string{"{insert: 'c', documents: [{_id: 1}]}", "{aggregate: 'c', pipeline: [{$merge: {into: 'c', whenMatched: 'fail'}}], cursor: {}}"} {
		reply := h.send(t.Context(), "1", "test", bson.MustDoc(command)).Body
		if reply.Lookup("ok").Truthy() {
			continue
		}
		if reply.Lookup("code").Int32() != 11000 || reply.Lookup("keyPattern").Text() != "{ _id: 1 }" || reply.Lookup("keyValue").Text() != "{ _id: 1 }" {
			t.Error(reply.Text())
		}
		return
	}
	t.Error("nothing was refused")
}
