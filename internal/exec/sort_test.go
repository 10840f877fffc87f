package exec

import (
	"math"
	"testing"

	"github.com/ebbdb/ebb/internal/bson"
)

// TestPrefix holds prefix to bson.Compare over every pair.
func TestPrefix(t *testing.T) {
	var vs []bson.Value
	for _, text := range []string{
		"MinKey", "null", "undefined", "NaN", "-Infinity", "-1e300", "-1.5", "-1", "-0.0", "0", "NumberDecimal(\"0.1\")", "0.1", "1", "NumberLong(1)",
		"NumberDecimal(\"1\")", "9007199254740993", "NumberLong(\"9223372036854775807\")", "9223372036854775808.0", "1e300", "Infinity",
		"NumberDecimal(\"1E+6000\")", "NumberDecimal(\"NaN\")", `""`, `"a"`, `"a\u0000"`, `"ab"`, `"abcdefgh"`, `"abcdefgi"`, `"é"`, `Symbol("ab")`, "{}",
		"{a: 1}", "[]", "[1]", `BinData(0, "AA==")`, `ObjectId("000000000000000000000001")`, `ObjectId("ff0000000000000000000001")`, "false", "true",
		`ISODate("1960-01-01T00:00:00Z")`, `ISODate("2020-01-01T00:00:00Z")`, "Timestamp(1, 2)", "Timestamp(4000000000, 1)", "/a/", `Code("x")`, "MaxKey",
	} {
		vs = append(vs, bson.MustParse(text))
	}
	vs = append(vs, bson.Missing, bson.Double(math.Copysign(0, -1)))
	for _, a := range vs {
		for _, b := range vs {
			pa, pb, c := prefix(a, false), prefix(b, false), bson.Compare(a, b)
			if pa < pb && c >= 0 || pa > pb && c <= 0 {
				t.Errorf("%s and %s: prefixes %x and %x, but Compare says %d", a.Text(), b.Text(), pa, pb, c)
			}
		}
	}
}
