package command

import (
	"runtime"
	"testing"

	"github.com/ebbdb/ebb/internal/bson"
)

// While writes are locked out, every command that writes waits, and can be seen to.
func TestWritersThatWaitAreSeen(t *testing.T) {
	for _, text := range []string{
		"{insert: 'c', documents: [{_id: 2}]}",
		"{update: 'c', updates: [{q: {_id: 1}, u: {$set: {x: 2}}}]}",
		"{delete: 'c', deletes: [{q: {_id: 1}, limit: 1}]}",
		"{findAndModify: 'c', query: {_id: 1}, remove: true}",
		"{aggregate: 'c', pipeline: [{$merge: 'd'}], cursor: {}}",
		"{aggregate: 'c', pipeline: [{$match: {}}, {$out: 'd'}], cursor: {}}",
		"{mapReduce: 'c', map: 'function() { emit(1, 1) }', reduce: 'function(k, v) { return 1 }', out: 'd'}",
		"{createIndexes: 'c', indexes: [{key: {x: 1}, name: 'x'}]}",
	} {
		t.Run(text, func(t *testing.T) {
			h := newHarness(t)
			admin := func(command string) bson.Doc { return h.send(t.Context(), "1", "admin", bson.MustDoc(command)).Body }
			h.send(t.Context(), "1", "test", bson.MustDoc("{insert: 'c', documents: [{_id: 1, x: 1}]}"))
			admin("{fsync: 1, lock: true}")
			writer := h.conn("2")
			done := make(chan bson.Doc, 1)
			go func() {
				reply := h.server.Handle(t.Context(), writer, Request{Body: bson.Build().Fields(bson.MustDoc(text)).String("$db", "test").Doc()})
				done <- reply.Body.Clone()
			}()
			looks := 0
			for admin("{currentOp: 1, waitingForLock: true}").Lookup("inprog").Doc().IsEmpty() {
				select {
				case reply := <-done:
					t.Fatal("it went on: ", reply.Text())
				default:
					runtime.Gosched()
				}
				if looks++; looks > 1e6 {
					t.Fatal("nobody waits")
				}
			}
			if pending := at(admin("{lockInfo: 1}").Value(), "lockInfo.0.pending"); pending.Type != bson.TypeArray || pending.Doc().Count() != 1 {
				t.Error(pending.Text())
			}
			if queue := at(admin("{serverStatus: 1}").Value(), "globalLock.currentQueue.writers"); queue.Int32() != 1 {
				t.Error(queue.Text())
			}
			if n := h.send(t.Context(), "1", "test", bson.MustDoc("{count: 'c'}")).Body.Lookup("n").Int32(); n != 1 {
				t.Error("somebody wrote: ", n)
			}
			admin("{fsyncUnlock: 1}")
			if reply := <-done; !reply.Lookup("ok").Truthy() {
				t.Error(reply.Text())
			}
			if waits := admin("{currentOp: 1, waitingForLock: true}").Lookup("inprog").Doc(); !waits.IsEmpty() {
				t.Error(waits.Text())
			}
		})
	}
}
