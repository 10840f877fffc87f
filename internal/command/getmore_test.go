package command

import (
	"fmt"
	"testing"

	"github.com/ebbdb/ebb/internal/bson"
)

// A getMore is told with what it has looked at itself, and a cursor that waits with its plan.
func TestWhatAGetMoreLooksAt(t *testing.T) {
	for _, opening := range []string{"{find: 'c', filter: {a: 1}, batchSize: 2, hint: 'a_1'}", "{aggregate: 'c', pipeline: [{$match: {a: 1}}, {$addFields: {b: 1}}], cursor: {batchSize: 2}, hint: 'a_1'}"} {
		h := newHarness(t)
		run := func(db, command string) bson.Doc {
			reply := h.send(t.Context(), "1", db, bson.MustDoc(command)).Body
			if !reply.Lookup("ok").Truthy() {
				t.Fatal(command, reply.Text())
			}
			return reply.Clone()
		}
		run("test", "{insert: 'c', documents: [{_id: 1, a: 1}, {_id: 2, a: 1}, {_id: 3, a: 1}, {_id: 4, a: 1}, {_id: 5, a: 1}, {_id: 6, a: 2}]}")
		run("test", "{createIndexes: 'c', indexes: [{key: {a: 1}, name: 'a_1'}]}")
		run("test", "{profile: 2}")
		id := at(run("test", opening).Value(), "cursor.id").Int64()
		idle := run("admin", "{aggregate: 1, pipeline: [{$currentOp: {idleCursors: true}}, {$match: {type: 'idleCursor'}}], cursor: {}}")
		row := at(idle.Value(), "cursor.firstBatch.0").Doc()
		if row.Lookup("planSummary").Text() != `"IXSCAN { a: 1 }"` || at(row.Value(), "cursor.nDocsReturned").Int64() != 2 || at(row.Value(), "cursor.lastAccessDate").Type != bson.TypeDate {
			t.Error(row.Text())
		}
		for range 2 {
			run("test", fmt.Sprintf("{getMore: NumberLong(%d), collection: 'c', batchSize: 2}", id))
		}
		run("test", "{profile: 0}")
		told := at(run("test", "{find: 'system.profile', filter: {op: 'getmore'}}").Value(), "cursor.firstBatch").Doc()
		for i, want := range []int32{2, 1} {
			d := told.Index(i).Doc()
			if d.Lookup("docsExamined").Int32() != want || d.Lookup("keysExamined").Int32() != want || d.Lookup("planSummary").Text() != `"IXSCAN { a: 1 }"` {
				t.Error(opening, d.Text())
			}
		}
	}
}
