package bson

import "testing"

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
