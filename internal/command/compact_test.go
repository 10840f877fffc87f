package command

import (
	"fmt"
	"strings"
	"testing"

	"github.com/ebbdb/ebb/internal/bson"
)

// compact gives back what deleted documents took and says how much; storageSize is what is on disk, which packs what repeats.
func TestCompactGivesRoomBack(t *testing.T) {
	notOnTiKV(t, "a cluster compacts by itself")
	h := newHarness(t)
	run := func(command bson.Doc) bson.Doc {
		reply := h.send(t.Context(), "1", "test", command).Body
		if !reply.Lookup("ok").Truthy() {
			t.Fatal(reply.Text())
		}
		return reply.Clone()
	}
	b := bson.Build().String("insert", "c").Array("documents")
	for i := range 2000 {
		b.Object(bson.IndexKey(i)).Int32("_id", int32(i)).String("x", fmt.Sprint(i, strings.Repeat("the same again ", 60))).End()
	}
	run(b.End().Doc())
	run(bson.MustDoc("{compact: 'c'}"))
	full := run(bson.MustDoc("{collStats: 'c'}"))
	stored, size := full.Lookup("storageSize").Int32(), full.Lookup("size").Int32()
	if stored > size/2 || stored <= 4096 {
		t.Errorf("%d documents of %d bytes take %d on disk", 2000, size, stored)
	}
	run(bson.MustDoc("{delete: 'c', deletes: [{q: {_id: {$gte: 10}}, limit: 0}]}"))
	reply := run(bson.MustDoc("{compact: 'c'}"))
	left := run(bson.MustDoc("{collStats: 'c'}")).Lookup("storageSize").Int32()
	if freed := reply.Lookup("bytesFreed").Int32(); left >= stored/2 || freed < stored/2 {
		t.Errorf("%d bytes are said to be freed, %d of %d are left", freed, left, stored)
	}
	if n := run(bson.MustDoc("{count: 'c'}")).Lookup("n").Int32(); n != 10 {
		t.Error("documents: ", n)
	}
	if again := run(bson.MustDoc("{compact: 'c', dryRun: true}")).Lookup("estimatedBytesFreed"); again.Type != bson.TypeInt32 {
		t.Error(again.Text())
	}
}
