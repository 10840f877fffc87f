package bson

import (
	"strings"
	"testing"
)

func TestJSON(t *testing.T) {
	for _, c := range []struct{ doc, want string }{
		{"{}", `{}`},
		{"{a: 1, b: 1.5, c: NumberLong(7), d: 'x\"<', e: [true, null]}", `{"a":1,"b":1.5,"c":7,"d":"x\"<","e":[true,null]}`},
		{"{t: ISODate('2026-01-02T03:04:05Z'), o: ObjectId('695735a58ed839a002000005')}",
			`{"t":{"$date":"2026-01-02T03:04:05Z"},"o":{"$oid":"695735a58ed839a002000005"}}`},
	} {
		if got := string(MustDoc(c.doc).JSON()); got != c.want {
			t.Errorf("%s: got %s, want %s", c.doc, got, c.want)
		}
	}
	if got := string(Doc("\x08\x00\x00\x00\x02a\x00\x00").JSON()); got == "" || got[0] != '"' {
		t.Errorf("what is no document should be a string, not %s", got)
	}
}

// What a document is too long for is left out with all behind it, in mongod's way.
func TestJSONWithin(t *testing.T) {
	for _, c := range []struct {
		doc             string
		most            int
		text, truncated string
	}{
		{"{a: 1, b: [{}, {c: 'x'}]}", 40, `{"a":1,"b":[{},{"c":"x"}]}`, "{}"},
		{"{a: 1, b: [1, {c: 'some text'}, 2], d: 1}", 20, `{"a":1,"b":[1,{}]}`, `{ b: { 1: { c: { type: "string", size: 14 } } } }`},
		{"{a: 1, b: [1, 2, 3, 4, 5, 6], d: 1}", 20, `{"a":1,"b":[1,2,3,4]}`, `{ b: { 4: { type: "int", size: 4 } } }`},
		{"{a: [{}, {}, {}, {}, {}, {}]}", 10, `{"a":[{},{}]}`, `{ a: { 2: { type: "object", size: 5 } } }`},
		{"{a: 1, 'a long name': {b: 1}}", 12, `{"a":1}`, `{ a long name: { type: "object", size: 12 } }`},
	} {
		text, truncated := MustDoc(c.doc).JSONWithin(c.most)
		if truncated == nil {
			truncated = EmptyDoc
		}
		if string(text) != c.text || truncated.String() != c.truncated {
			t.Errorf("%s in %d: %s without %s", c.doc, c.most, text, truncated)
		}
	}
	long := strings.Repeat("x", 1000)
	text, truncated := Build().Object(long).Int32("a", 1).End().Doc().JSONWithin(100)
	if len(text) > 100 || len(truncated) > 300 {
		t.Errorf("%s without %s", text, truncated)
	}
}

func TestBeginning(t *testing.T) {
	for _, c := range []struct {
		doc, want string
		most      int
	}{
		{"{a: 1, b: [1, {c: 'x'}]}", `{ a: 1, b: [ 1, { c: "x" } ] }`, 30},
		{"{a: 1, b: [1, {c: 'x'}]}", `{ a: 1, b: [ 1, { c: "x" }...`, 29},
		{"{a: 1, b: [], c: {}}", `{ a: 1, b: [],...`, 17},
		{"{a: 'ääää'}", `{ a: "ä...`, 12},
	} {
		if got := MustDoc(c.doc).Value().Beginning(c.most); got != c.want || len(got) > c.most {
			t.Errorf("%s in %d: %s", c.doc, c.most, got)
		}
	}
	many := Build().Array("a")
	for i := range 1000 {
		many.Int32(IndexKey(i), 1)
	}
	if got := appendBeginning(nil, many.End().Doc().Value(), 50); len(got) > 100 {
		t.Errorf("it goes on to %d bytes", len(got))
	}
}
