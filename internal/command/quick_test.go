package command

import (
	"bytes"
	"encoding/binary"
	"testing"

	"github.com/ebbdb/ebb/internal/bson"
	"github.com/ebbdb/ebb/internal/wire"
)

func TestQuick(t *testing.T) {
	h := newHarness(t)
	for _, setUp := range []string{
		"{insert: 'c', documents: [{_id: 1}]}",
		"{create: 'v', viewOn: 'c', pipeline: []}",
		"{create: 'o', collation: {locale: 'de'}}",
		"{create: 's', timeseries: {timeField: 't'}}",
		"{create: 'k', clusteredIndex: {key: {_id: 1}, unique: true}}",
	} {
		if r := h.send(t.Context(), "1", "test", bson.MustDoc(setUp)); !r.Body.Lookup("ok").Truthy() {
			t.Fatal(r.Body)
		}
	}
	for text, want := range map[string]bool{
		"{ping: 1}":                           true,
		"{hello: 1}":                          false,
		"{getMore: NumberLong(7)}":            false,
		"{aggregate: 'c', pipeline: []}":      false,
		"{insert: 'c', documents: [{a: 1}]}":  true,
		"{find: 'c'}":                         false,
		"{find: 1, filter: {_id: 1}}":         false,
		"{find: 'c', filter: {}}":             false,
		"{find: 'c', filter: {a: 1}}":         false,
		"{find: 'c', filter: {_id: 1}}":       true,
		"{find: 'none', filter: {_id: 1}}":    true,
		"{find: 'k', filter: {_id: 1}}":       true,
		"{find: 'v', filter: {_id: 1}}":       false,
		"{find: 'o', filter: {_id: 1}}":       false,
		"{find: 's', filter: {_id: 1}}":       false,
		"{find: 'c', filter: {_id: {a: 1}}}":  false,
		"{find: 'c', filter: {_id: [1]}}":     false,
		"{find: 'c', filter: {_id: 1, b: 2}}": false,
		"{find: 'c', filter: {_id: 1}, limit: 1, singleBatch: true, projection: {a: 1}}":            true,
		"{find: 'c', filter: {_id: 1}, projection: {a: {$add: [1, 2]}}}":                            false,
		"{find: 'c', filter: {_id: 1}, hint: 'a'}":                                                  false,
		"{find: 'c', filter: {_id: 1}, let: {a: 1}}":                                                false,
		"{update: 'c', updates: [{q: {_id: 1}, u: {$set: {a: 1}}}]}":                                true,
		"{update: 'c', updates: [{q: {_id: 1}, u: {$set: {a: 1}}}], writeConcern: {w: 'majority'}}": true,
		"{update: 'c', updates: [{q: {_id: 1}, u: [{$set: {a: 1}}]}]}":                              false,
		"{update: 'c', updates: [{q: {_id: 1}, u: {a: 1}}, {q: {a: 1}, u: {a: 1}}]}":                false,
		"{update: 'c', updates: [{q: {_id: 1}, u: {a: 1}, collation: {locale: 'de'}}]}":             false,
		"{delete: 'c', deletes: [{q: {_id: 1}, limit: 1}]}":                                         true,
		"{delete: 'c', deletes: [{q: {}, limit: 0}]}":                                               false,
		"{findAndModify: 'c', query: {_id: 1}, update: {$set: {a: 1}}, new: true}":                  true,
		"{findAndModify: 'c', query: {_id: 1}, remove: true, sort: {a: 1}}":                         false,
		"{findAndModify: 'c', query: {a: 1}, remove: true}":                                         false,
		"{findAndModify: 'c', query: {_id: 1}, update: [{$set: {a: 1}}]}":                           false,
	} {
		req := Request{Body: bson.Build().Fields(bson.MustDoc(text)).String("$db", "test").Doc(), Size: 200}
		if got := h.server.Quick(req); got != want {
			t.Errorf("%s: %v", text, got)
		}
		for what, slow := range map[string]Request{
			"large":       {Body: req.Body, Size: maxQuickBytes + 1},
			"exhaust":     {Body: req.Body, ExhaustAllowed: true},
			"an OP_QUERY": {Body: req.Body, Database: "test"},
		} {
			if h.server.Quick(slow) {
				t.Errorf("%s, %s", text, what)
			}
		}
	}
	if h.server.Quick(Request{Body: bson.EmptyDoc}) {
		t.Error("{}")
	}
}

func TestQuickStatements(t *testing.T) {
	h := newHarness(t)
	update := "{update: 'c', ordered: true, $db: 'test'}"
	for _, c := range []struct {
		statements []string
		want       bool
	}{
		{[]string{"{q: {_id: 1}, u: {$set: {a: 1}}, multi: false, upsert: true}"}, true},
		{[]string{"{q: {_id: 1}, u: {a: 1}}", "{q: {_id: 'a'}, u: {a: 1}}"}, true},
		{[]string{"{q: {_id: 1}, u: {a: 1}}", "{q: {a: 1}, u: {a: 1}}"}, false},
		{[]string{"{q: {_id: 1}, u: [{$set: {a: 1}}]}"}, false},
		{[]string{"{q: {_id: 1}, u: {a: 1}, hint: 'b'}"}, false},
	} {
		if got := h.server.Quick(withStatements(t, update, "updates", c.statements...)); got != c.want {
			t.Errorf("%s: %v", c.statements, got)
		}
	}
}

// withStatements is a command whose statements come beside its body.
func withStatements(t testing.TB, body, name string, statements ...string) Request {
	t.Helper()
	sequence := append([]byte(name), 0)
	for _, s := range statements {
		sequence = append(sequence, bson.MustDoc(s)...)
	}
	payload := append([]byte{0, 0, 0, 0, 0}, bson.MustDoc(body)...)
	payload = binary.LittleEndian.AppendUint32(append(payload, 1), uint32(len(sequence)+4))
	payload = append(payload, sequence...)
	header := binary.LittleEndian.AppendUint32(nil, uint32(len(payload)+16))
	header = append(header, make([]byte, 8)...)
	header = binary.LittleEndian.AppendUint32(header, uint32(wire.OpMsg))
	codec, err := wire.NewCodec(nil)
	if err != nil {
		t.Fatal(err)
	}
	m, err := codec.NewReader(bytes.NewReader(append(header, payload...))).ReadMessage()
	if err != nil {
		t.Fatal(err)
	}
	return Request{Body: m.Body, Sequences: m.Sequences, Size: m.Size}
}

func BenchmarkQuick(b *testing.B) {
	h := newHarness(b)
	lsid := "lsid: {id: UUID('00112233-4455-6677-8899-aabbccddeeff')}, $db: 'test'"
	for name, req := range map[string]Request{
		"insert": {Body: bson.MustDoc("{insert: 'c', " + lsid + "}")},
		"find":   {Body: bson.MustDoc("{find: 'c', filter: {_id: 1}, limit: 1, singleBatch: true, " + lsid + "}")},
		"update": withStatements(b, "{update: 'c', ordered: true, "+lsid+"}", "updates", "{q: {_id: 1}, u: {$set: {a: 1}}}"),
	} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if !h.server.Quick(req) {
					b.Fatal("not quick")
				}
			}
		})
	}
}
