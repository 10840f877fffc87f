package index

import (
	"testing"

	"github.com/ebbdb/ebb/internal/bson"
)

// TestHashesOfEqualValues: values that compare equal have one hash, alone and within others.
func TestHashesOfEqualValues(t *testing.T) {
	values := bson.MustDoc(`{v: [1, 1.0, NumberLong("1"), NumberDecimal("1.00"), 0, -0.0, NumberDecimal("-0"), 1.5, NumberDecimal("1.50"), NaN, NumberDecimal("NaN"),
		Infinity, NumberDecimal("Infinity"), -Infinity, NumberDecimal("-Infinity"), NumberLong("9223372036854775807"), NumberDecimal("9223372036854775807"),
		9223372036854775808.0, NumberDecimal("9223372036854775808"), NumberLong("-9223372036854775808"), -9223372036854775808.0, NumberDecimal("-9223372036854775808"),
		1e300, NumberDecimal("1e300"), -1e300, NumberDecimal("-1e6000"), NumberLong("9007199254740993"), NumberDecimal("9007199254740993"), 9007199254740992.0,
		0.1, NumberDecimal("0.1"), NumberDecimal("0.1000000000000000055511151231257827"), "1", true, null]}`).Lookup("v").Doc().Values(nil)
	for _, c := range []string{`{key: {v: "hashed"}}`, `{key: {v: "hashed"}, collation: {locale: "en", strength: 1}}`} {
		d, err := newParser().Parse(named(bson.MustDoc(c)), nil)
		if err != nil {
			t.Fatal(err)
		}
		equal := 0
		for i, a := range values {
			for _, b := range values[:i] {
				if bson.Compare(a, b) != 0 {
					continue
				}
				equal++
				within := func(v bson.Value) bson.Value { return bson.Build().Value("x", bson.ArrayOf(v)).Doc().Value() }
				if !bson.Equal(d.Hash(a), d.Hash(b)) || !bson.Equal(d.Hash(within(a)), d.Hash(within(b))) {
					t.Errorf("%s: %s and %s have the hashes %s and %s", c, a, b, d.Hash(a), d.Hash(b))
				}
			}
		}
		if equal < 15 {
			t.Errorf("only %d pairs are equal", equal)
		}
	}
}
