package spec

import (
	"testing"

	"github.com/ebbdb/ebb/internal/bson"
)

func TestReader(t *testing.T) {
	for _, c := range []struct {
		doc  string
		read func(*Reader)
		want string // "" where nothing is wrong
	}{
		{`{}`, func(r *Reader) {}, ""},
		{`{a: null}`, func(r *Reader) { r.Text("a", false) }, ""},
		{`{a: null}`, func(r *Reader) { r.Text("a", true) }, `"at.a" is required`},
		{`{}`, func(r *Reader) { r.Required("a") }, `"at.a" is required`},
		{`{a: 1}`, func(r *Reader) { r.Text("a", false) }, `"at.a" must be a string`},
		{`{a: ""}`, func(r *Reader) { r.NonEmpty("a", false) }, `"at.a" cannot be empty`},
		{`{a: " "}`, func(r *Reader) { r.NonBlank("a", false) }, `"at.a" cannot be blank`},
		{`{a: 1}`, func(r *Reader) { r.Bool("a", true) }, `"at.a" must be a boolean`},
		{`{a: "c"}`, func(r *Reader) { r.Enum("a", "x", "x", "b") }, `"at.a" must be one of [b, x]`},
		{`{}`, func(r *Reader) { r.Enum("a", "", "x", "b") }, `"at.a" is required`},
		{`{a: 2.0}`, func(r *Reader) { r.IntOr("a", 1, 7) }, ""},
		{`{a: "x"}`, func(r *Reader) { r.Int("a", false) }, `"at.a" must be a integer`},
		{`{a: 2.5}`, func(r *Reader) { r.Int("a", false) }, `"at.a" must be an integer`},
		{`{a: NaN}`, func(r *Reader) { r.Int("a", false) }, `"at.a" must be an integer`},
		{`{a: Infinity}`, func(r *Reader) { r.Int("a", false) }, `"at.a" overflowed, must fit in a 32 bit integer`},
		{`{a: -3000000000}`, func(r *Reader) { r.Int("a", false) }, `"at.a" underflowed, must fit in a 32 bit integer`},
		{`{a: 0}`, func(r *Reader) { r.IntOr("a", 1, 7) }, `"at.a" must be positive`},
		{`{a: -1}`, func(r *Reader) { r.IntOr("a", 0, 7) }, `"at.a" cannot be negative`},
		{`{}`, func(r *Reader) { r.IntOr("a", 0, -1) }, `"at.a" is required`},
		{`{a: 3}`, func(r *Reader) { r.IntWithin("a", 1, 2, 1) }, `"at.a" must be within bounds [1..2]`},
		{`{a: []}`, func(r *Reader) { r.Object("a", false) }, `"at.a" must be a document`},
		{`{a: {}}`, func(r *Reader) { r.Elements("a", false, 1) }, `"at.a" must be a array`},
		{`{a: [1, 2]}`, func(r *Reader) { r.Elements("a", false, 1) }, `"at.a" cannot have more than 1 elements`},
		{`{a: [{}, 2]}`, func(r *Reader) { r.Objects("a", false, 2) }, `"at.a[1]" must be a document`},
		{`{a: ["x", 2]}`, func(r *Reader) { r.Texts("a", false, 2) }, `"at.a[1]" must be a string`},
		{`{a: 1}`, func(r *Reader) {}, `"at" unrecognized field "a"`},
		{`{a: 1, b: 2, c: 3}`, func(r *Reader) { r.Int("b", true) }, `"at" unrecognized fields ["a", "c"]`},
		{`{a: 1, b: 2}`, func(r *Reader) { r.Refuse("is wrong"); r.Text("a", true) }, `"at" is wrong`},
	} {
		r := New("at", bson.MustDoc(c.doc))
		c.read(r)
		got := ""
		if err := r.Done(); err != nil {
			got = err.Error()
		}
		if got != c.want {
			t.Errorf("%s: got %s, want %s", c.doc, got, c.want)
		}
	}
	if err := At("", "is %s", "wrong"); err.Error() != "is wrong" {
		t.Errorf("without a path: %v", err)
	}
}
