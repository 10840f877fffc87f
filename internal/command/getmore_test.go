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

// TestGetMoreKeepsToTheAPI: a getMore says of the stable API what the command says that opened its cursor, or gets nothing; the cursor stays.
func TestGetMoreKeepsToTheAPI(t *testing.T) {
	h := newHarness(t)
	h.must("1", "test", `{insert: "c", documents: [{_id: 1}, {_id: 2}]}`)
	const plain, strict = ``, `, apiVersion: '1', apiStrict: true`
	for _, c := range []struct{ opened, wrong, want string }{
		{plain, strict, `API parameter mismatch: getMore used params { apiVersion: "1", apiStrict: true }, the cursor-creating command used {}`},
		{strict, plain, `API parameter mismatch: getMore used params {}, the cursor-creating command used { apiVersion: "1", apiStrict: true }`},
	} {
		id := at(h.must("1", "test", `{find: 'c', batchSize: 1`+c.opened+`}`).Value(), "cursor.id").Int64()
		getMore := func(how string) bson.Doc {
			return h.send(t.Context(), "1", "test", bson.MustDoc(fmt.Sprintf("{getMore: NumberLong(%d), collection: 'c'%s}", id, how))).Body
		}
		if got := getMore(c.wrong); got.Lookup("code").Int32() != 347 || got.Lookup("errmsg").Str() != c.want {
			t.Error(got.Text())
		}
		if got := getMore(c.opened); !got.Lookup("ok").Truthy() {
			t.Error(got.Text())
		}
	}
}
