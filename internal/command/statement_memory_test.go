package command

import (
	"fmt"
	"strings"
	"testing"

	"github.com/ebbdb/ebb/internal/bson"
	"github.com/ebbdb/ebb/internal/cursor"
	"github.com/ebbdb/ebb/internal/memory"
)

// TestParsedBytes: what is parsed is counted, of statements that are parsed one after the other the largest, and what stays as it is is not.
func TestParsedBytes(t *testing.T) {
	const document, value = parsedDocumentBytes, parsedValueBytes
	for command, want := range map[string]int64{
		`{find: "c"}`: value,
		`{find: "c", filter: {$or: [{a: 1}, {b: {$gt: 2}}]}}`:                                             value + 5*document + 2*value,
		`{insert: "c", documents: [{a: 1}, {b: {c: 1}}]}`:                                                 value,
		`{update: "c", updates: [{q: {a: 1}, u: {$set: {a: [1, 2]}}}, {q: {}, u: {$pull: {a: {b: 1}}}}]}`: value + 3*document + value,
		`{update: "c", updates: [{q: {}, u: {a: {b: [1, 2, 3]}}}]}`:                                       value + document,
		`{update: "c", updates: [{q: {}, u: [{$set: {a: 1}}]}]}`:                                          value + 4*document + value,
		`{delete: "c", deletes: [{q: {a: 1}, limit: 1}, {q: {a: {$in: [1, 2]}}, limit: 1}]}`:              value + 3*document + 3*value,
		`{bulkWrite: 1, ops: [{insert: 0, document: {a: {b: 1}}}, {update: 0, filter: {}}]}`:              value + document + value,
		`{findAndModify: "c", query: {a: 1}, update: {document: {a: 1}}}`:                                 value + document + value,
		`{findAndModify: "c", update: {$set: {documents: [1]}}}`:                                          value + document + value,
		`{explain: {delete: "c", deletes: [{q: {a: 1}}]}}`:                                                4*document + 2*value,
		`{aggregate: "c", pipeline: [{$match: {documents: {a: 1}}}, {$limit: 1}], cursor: {}}`:            value + 6*document + 2*value,
	} {
		if n := parsedBytes(bson.MustDoc(command)); n != want {
			t.Errorf("%s: %d instead of %d", command, n, want)
		}
	}
}

// TestMemoryOfStatements: the memory that a large statement needs is taken before it is parsed, and given back behind it; that of an open cursor stays taken.
func TestMemoryOfStatements(t *testing.T) {
	const totalBytes = 64 << 20
	h := newHarness(t)
	h.server.Query.Memory = memory.New(totalBytes, h.clock, nil)
	h.server.Cursors = cursor.NewRegistry(h.clock, h.server.Query.Memory)
	used := func(k memory.Kind) int64 { return h.server.Query.Memory.Stats().By[k] }
	or := func(n int) string {
		b := strings.Builder{}
		for i := range n {
			fmt.Fprintf(&b, "{a: %d}, ", i)
		}
		return "{$or: [" + b.String() + "]}"
	}
	h.must("1", "test", `{insert: "c", documents: [{_id: 1, a: 1}, {_id: 2, a: 2}, {_id: 3, a: 3}]}`)
	cursor := h.must("1", "test", `{find: "c", batchSize: 1, filter: `+or(5000)+`}`).Lookup("cursor").Doc()
	if n := used(memory.Cursors); n < 5000*(parsedDocumentBytes+parsedValueBytes) {
		t.Errorf("an open cursor takes %d bytes", n)
	}
	if n := used(memory.Requests); n != 0 {
		t.Errorf("%d bytes stay taken", n)
	}
	h.must("1", "test", fmt.Sprintf(`{getMore: %d, collection: "c"}`, cursor.Lookup("id").Int64()))
	if n := used(memory.Cursors); n != 0 {
		t.Errorf("behind its last batch a cursor takes %d bytes", n)
	}
	half := fmt.Sprintf(`{find: "c", batchSize: 1, singleBatch: false, filter: %s}`, or(totalBytes*3/5/(parsedDocumentBytes+parsedValueBytes)))
	h.must("1", "test", fmt.Sprintf(`{killCursors: "c", cursors: [%d]}`, h.must("1", "test", half).Lookup("cursor").Doc().Lookup("id").Int64()))
	large := or(totalBytes / parsedDocumentBytes)
	for _, command := range []string{`{find: "c", filter: ` + large + `}`, `{aggregate: "c", cursor: {}, pipeline: [{$match: ` + large + `}]}`,
		`{delete: "c", deletes: [{q: ` + large + `, limit: 0}]}`, `{explain: {count: "c", query: ` + large + `}}`} {
		reply := h.send(t.Context(), "1", "test", bson.MustDoc(command)).Body
		if reply.Lookup("codeName").Text() != `"ExceededMemoryLimit"` {
			t.Errorf("%.30s: %.200s", command, reply)
		}
	}
	if n := used(memory.Requests); n != 0 {
		t.Errorf("refused, %d bytes stay taken", n)
	}
	h.must("1", "test", `{insert: "c", documents: [`+strings.Repeat("{a: [{}, {}, {}, {}, {}, {}, {}, {}]}, ", 20000)+`]}`)
}
