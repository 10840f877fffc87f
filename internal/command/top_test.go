package command

import (
	"testing"

	"github.com/ebbdb/ebb/internal/bson"
)

// top counts statements, whatever command they came with, until their collection or database is dropped.
func TestTopCountsStatements(t *testing.T) {
	h := newHarness(t)
	run := func(db, command string) bson.Doc {
		reply := h.send(t.Context(), "1", db, bson.MustDoc(command)).Body
		if !reply.Lookup("ok").Truthy() {
			t.Fatal(command, reply.Text())
		}
		return reply.Clone()
	}
	run("admin", "{bulkWrite: 1, ops: [{insert: 0, document: {_id: 1}}, {insert: 0, document: {_id: 2}}, {update: 0, filter: {_id: 1}, updateMods: {$set: {x: 1}}}, {delete: 0, filter: {_id: 2}}], nsInfo: [{ns: 'test.c'}]}")
	run("test", "{update: 'c', updates: [{q: {_id: 1}, u: {$set: {x: 2}}}, {q: {_id: 1}, u: {$set: {x: 3}}}]}")
	run("test", "{delete: 'c', deletes: [{q: {_id: 8}, limit: 1}, {q: {_id: 9}, limit: 1}]}")
	run("test", "{insert: 'c', documents: [{_id: 3}]}")
	counts := run("admin", "{top: 1}").Lookup("totals").Doc().Lookup("test.c")
	for name, want := range map[string]int64{"insert": 2, "update": 3, "remove": 3, "writeLock": 8, "total": 8, "readLock": 0} {
		if got := at(counts, name+".count"); got.Int64() != want {
			t.Errorf("%s: %s, not %d", name, got.Text(), want)
		}
	}
	run("test", "{dropDatabase: 1}")
	if left := run("admin", "{top: 1}").Lookup("totals").Doc().Lookup("test.c"); !left.IsMissing() {
		t.Error(left.Text())
	}
}

// $collStats tells each operation of a collection as one of a read, a write and a command.
func TestCollStatsCountsEachOnce(t *testing.T) {
	h := newHarness(t)
	for _, command := range []string{
		"{create: 'c'}", "{createIndexes: 'c', indexes: [{key: {x: 1}, name: 'x'}]}", "{listIndexes: 'c'}", // commands
		"{insert: 'c', documents: [{_id: 1}]}", "{update: 'c', updates: [{q: {_id: 1}, u: {$set: {x: 1}}}]}", "{findAndModify: 'c', query: {_id: 1}, remove: true}", // writes
		"{find: 'c'}", "{aggregate: 'c', pipeline: [], cursor: {}}", "{count: 'c'}", "{distinct: 'c', key: 'x'}", // reads
	} {
		if reply := h.send(t.Context(), "1", "test", bson.MustDoc(command)).Body; !reply.Lookup("ok").Truthy() {
			t.Fatal(command, reply.Text())
		}
	}
	reply := h.send(t.Context(), "1", "test", bson.MustDoc("{aggregate: 'c', pipeline: [{$collStats: {latencyStats: {}}}], cursor: {}}")).Body
	for name, want := range map[string]int64{"reads": 4, "writes": 3, "commands": 3} {
		if got := at(reply.Value(), "cursor.firstBatch.0.latencyStats."+name+".ops"); got.Int64() != want {
			t.Errorf("%s: %s, not %d", name, got.Text(), want)
		}
	}
}
