package command

import (
	"testing"

	"github.com/ebbdb/ebb/internal/bson"
)

// TestLargeExplain: what explain tells fits a reply, whatever it is asked of, and says what it leaves out.
func TestLargeExplain(t *testing.T) {
	h := newHarness(t)
	run := func(d bson.Doc) bson.Doc {
		reply := h.send(t.Context(), "1", "test", d).Body
		if !reply.Lookup("ok").Truthy() {
			t.Fatalf("%.300s", reply)
		}
		if len(reply) > bson.MaxDocSize {
			t.Errorf("a reply of %d bytes", len(reply))
		}
		return reply
	}
	run(bson.MustDoc("{insert: 'c', documents: [{a: 1, b: 1}]}"))
	find := func(field string, n int) bson.Doc {
		b := bson.Build().String("find", "c").Object("filter").Object(field).Array("$in")
		for i := range n {
			b.Int32(bson.IndexKey(i), int32(i))
		}
		return b.End().End().End().Doc()
	}
	lookUp := func(reply bson.Doc, path ...string) bson.Value {
		for _, key := range path[:len(path)-1] {
			reply = reply.Lookup(key).Doc()
		}
		return reply.Lookup(path[len(path)-1])
	}
	explain := func(command bson.Doc) bson.Doc { return run(bson.Build().Document("explain", command).Doc()) }

	// No index: parsedQuery takes 6 MB, the filter of a plan as much, which is too much together.
	reply := explain(find("a", 500_000))
	if got := lookUp(reply, "queryPlanner", "winningPlan", "warning"); got.IsMissing() || got.Str() != "filter exceeded BSON size limit for explain" {
		t.Errorf("COLLSCAN: %s", got)
	}
	// In the executionStats there is no room left for the plan at all, nor behind them for the command.
	run(bson.MustDoc("{createIndexes: 'c', indexes: [{key: {a: 1}, name: 'a'}]}"))
	reply = explain(find("a", 500_000))
	if got := lookUp(reply, "queryPlanner", "winningPlan", "inputStage", "warning"); got.IsMissing() || got.Str() != "index bounds omitted due to BSON size limit for explain" {
		t.Errorf("IXSCAN: %s", got)
	}
	reply = explain(find("a", 800_000))
	if got := lookUp(reply, "warning"); got.IsMissing() || got.Str() != "'command' has been omitted due to exceeding BSON size limit" {
		t.Errorf("command: %s", got)
	}
	// What is small stays whole.
	reply = explain(find("a", 1000))
	if lookUp(reply, "queryPlanner", "winningPlan", "inputStage", "indexBounds").IsMissing() || lookUp(reply, "command").IsMissing() {
		t.Errorf("%.1000s", reply)
	}
}
