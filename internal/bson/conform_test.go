package bson

import "testing"

func TestConform(t *testing.T) {
	outOfSequence := Build().Document("1", EmptyDoc).Doc()
	for _, c := range []struct {
		doc            Doc
		extended, full bool // whether it conforms
	}{
		{MustDoc(`{a: 1, b: [1, {c: "x"}], u: UUID('11111111-1111-4111-8111-111111111111'), r: /x/ims}`), true, true},
		{Build().Value("a", outOfSequence.ArrayValue()).Doc(), false, false},
		{Build().Int32("a", 1).Int32("a", 2).Doc(), true, false},
		{Build().Object("a").Int32("b", 1).Int32("b", 2).End().Doc(), true, false},
		{Build().String("a", "\xff").Doc(), true, false},
		{Build().Int32("\xff", 1).Doc(), true, false},
		{Build().Binary("u", 4, []byte("short")).Doc(), false, false},
		{Build().Binary("u", 5, []byte("short")).Doc(), false, false},
		{Build().Binary("u", 3, make([]byte, 16)).Doc(), false, false},
		{Build().Value("u", Value{Type: TypeUndefined}).Doc(), false, false},
	} {
		if err := Conform(c.doc, false); (err == nil) != c.extended {
			t.Errorf("%s: %v", c.doc, err)
		}
		if err := Conform(c.doc, true); (err == nil) != c.full {
			t.Errorf("%s in full: %v", c.doc, err)
		}
	}
}
