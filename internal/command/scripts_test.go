package command

import (
	"testing"

	"github.com/ebbdb/ebb/internal/bson"
	"github.com/ebbdb/ebb/internal/mongoerr"
)

// TestWithoutJavaScript: security.javascriptEnabled is false.
func TestWithoutJavaScript(t *testing.T) {
	h := newHarness(t)
	h.server.Query.Scripts = nil
	for text, want := range map[string]mongoerr.Code{
		"{find: 'c', filter: {$where: 'true'}}":                                                           6108304,
		"{count: 'c', query: {$or: [{$where: 'true'}]}}":                                                  6108304,
		"{explain: {find: 'c', filter: {$where: 'true'}}}":                                                6108304,
		"{aggregate: 'c', pipeline: [{$match: {$where: 'true'}}], cursor: {}}":                            mongoerr.BadValue,
		"{find: 'c', filter: {$expr: {$function: {body: 'true', args: [], lang: 'js'}}}}":                 31264,
		"{aggregate: 'c', pipeline: [{$group: {_id: 1, a: {$accumulator: {init: 'true'}}}}], cursor: {}}": 31264,
		"{mapReduce: 'c', map: 'function() {}', reduce: 'function() {}', out: {inline: 1}}":               31246,
	} {
		reply := h.send(t.Context(), "1", "test", bson.MustDoc(text)).Body
		if got := reply.Lookup("code"); got.Type != bson.TypeInt32 || got.Int32() != int32(want) {
			t.Errorf("%s: %s", text, reply)
		}
	}
	reply := h.send(t.Context(), "1", "test", bson.MustDoc("{update: 'c', updates: [{q: {$where: 'true'}, u: {$set: {a: 1}}}]}")).Body
	if got := reply.Lookup("writeErrors").Doc().Index(0).Doc().Lookup("code").Int32(); got != 6108304 {
		t.Errorf("update: %s", reply)
	}
}
