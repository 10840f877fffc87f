package bson

import "testing"

// TestCanonical holds AppendCanonical to Compare over every pair of values that are near to one another.
func TestCanonical(t *testing.T) {
	texts := []string{
		"0", "-0.0", "NumberLong(0)", `NumberDecimal("0")`, `NumberDecimal("-0E+10")`, "1", "1.0", "NumberLong(1)", `NumberDecimal("1.000")`,
		"0.5", `NumberDecimal("0.50")`, "0.1", `NumberDecimal("0.1")`, "NaN", `NumberDecimal("NaN")`, "Infinity", `NumberDecimal("Infinity")`,
		`NumberDecimal("1E+6000")`, `NumberDecimal("10E+5999")`, `NumberDecimal("1E-6000")`, "9223372036854775808.0",
		`NumberDecimal("9223372036854775808")`, "NumberLong(\"9223372036854775807\")", `NumberDecimal("9223372036854775807")`,
		`"a"`, `Symbol("a")`, `"ab"`, `""`, "null", "undefined", "[]", "{}", "[1]", "[1.0]", "[[1]]", "[1, 2]", "{a: 1}", "{a: 1.0}", "{b: 1}",
		"{a: {b: 1}}", "{a: [1]}", "true", "false", "MinKey", "MaxKey", `ISODate("2020-01-01T00:00:00Z")`, "Timestamp(1, 2)", "/a/", "/a/i",
		`Code("a")`, `Code("a", {x: 1})`, `Code("a", {x: 1.0})`, `BinData(0, "AA==")`, `BinData(1, "AA==")`, `ObjectId("000000000000000000000001")`,
	}
	for _, at := range texts {
		for _, bt := range texts {
			a, b := MustParse(at), MustParse(bt)
			same := string(AppendCanonical(nil, a, nil)) == string(AppendCanonical(nil, b, nil))
			if same != Equal(a, b) {
				t.Errorf("%s and %s: same bytes %v, equal %v", at, bt, same, Equal(a, b))
			}
		}
	}
}

func TestDecimalFromFloatExact(t *testing.T) {
	for f, want := range map[float64]string{
		0.1: "0.1000000000000000055511151231257827", 2.5: "2.5", 1: "1", 100: "100", 1e20: "100000000000000000000",
		1e300: "1.000000000000000052504760255204420E+300", -0.25: "-0.25",
	} {
		if got := DecimalFromFloatExact(f).String(); got != want {
			t.Errorf("%g: %s, want %s", f, got, want)
		}
	}
}

func TestRoundInt64(t *testing.T) {
	for text, want := range map[string]int64{
		"1.999": 1, "-1.999": -1, "NaN": 0, "7": 7, "1e300": 9223372036854775807, `NumberDecimal("0.51")`: 1, `NumberDecimal("0.5")`: 0,
		`NumberDecimal("1.5")`: 2, `NumberDecimal("-2.5")`: -2, `NumberDecimal("NaN")`: 0, `NumberDecimal("1E+40")`: 9223372036854775807,
	} {
		if got := MustParse(text).RoundInt64(); got != want {
			t.Errorf("%s: %d, want %d", text, got, want)
		}
	}
}
