package bson

import (
	"math"
	"math/big"
	"strings"
	"testing"
)

func TestTextRoundTrips(t *testing.T) {
	for _, s := range []string{
		`{ a: 1, b: 1.0, c: NumberLong(1), d: NumberDecimal("1.50"), "e f": "x\"y\n", g: [ 1, [], {} ] }`,
		`[ true, false, null, undefined, MinKey, MaxKey, NaN, Infinity, -Infinity, -0.0, 1e+100 ]`,
		`[ ISODate("2024-02-29T12:00:00Z"), ISODate("1969-12-31T23:59:59.999Z"), Date(-9223372036854775808), Timestamp(4294967295, 1) ]`,
		`[ ObjectId("0102030405060708090a0b0c"), BinData(0, "AQID"), BinData(2, "AQID"), /a\/b/im, Symbol("s"), Code("f()"), Code("f()", { x: 1 }), DBPointer("a.b", ObjectId("0102030405060708090a0b0c")) ]`,
	} {
		v, err := Parse(s)
		if err != nil {
			t.Errorf("%s: %v", s, err)
			continue
		}
		doc := Build().Value("v", v).Doc()
		if err := Validate(doc, MaxDepth); err != nil {
			t.Errorf("%s: %v", s, err)
		}
		if got := v.Text(); got != s {
			t.Errorf("read %s, printed %s", s, got)
		}
	}
	for _, s := range []string{`{`, `{a}`, `[1`, `"x`, `wat`, `ObjectId("1")`, `1 2`, `/x`, `new`} {
		if v, err := Parse(s); err == nil {
			t.Errorf("%s: read as %s", s, v.Text())
		}
	}
}

func TestMessageText(t *testing.T) {
	v := MustParse(`{ a: NumberLong(1), b: "x", c: ObjectId("0102030405060708090a0b0c"), d: Date(5), e: [1.0], f: {} }`)
	if got, want := v.String(), `{ a: 1, b: "x", c: ObjectId('0102030405060708090a0b0c'), d: new Date(5), e: [ 1.0 ], f: {} }`; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

// TestCompareOrder lists values in MongoDB's order; values of one line are equal.
// TestDoublesInMessages: sixteen digits of what a command says, and six of what an expression has computed.
func TestDoublesInMessages(t *testing.T) {
	for _, c := range []struct {
		f              float64
		said, computed string
	}{
		{math.Copysign(0, -1), "-0.0", "-0"}, {1, "1.0", "1"}, {1.5, "1.5", "1.5"}, {1234567, "1234567.0", "1.23457e+06"}, {-2147483648, "-2147483648.0", "-2.14748e+09"},
		{1e16, "1e+16", "1e+16"}, {1e-5, "1e-05", "1e-05"}, {1e-308, "9.999999999999999e-309", "1e-308"}, {5e-324, "4.940656458412465e-324", "4.94066e-324"},
		{3.14159265358979, "3.14159265358979", "3.14159"}, {math.Inf(1), "inf", "inf"}, {math.Inf(-1), "-inf", "-inf"}, {math.NaN(), "nan", "nan"},
	} {
		if got := Double(c.f).String(); got != c.said {
			t.Errorf("%v is shown as %s, want %s", c.f, got, c.said)
		}
		if got := Double(c.f).Computed(); got != c.computed {
			t.Errorf("%v is shown as computed as %s, want %s", c.f, got, c.computed)
		}
	}
}

func TestComputedText(t *testing.T) {
	v, err := Parse(`{a: 1, b: "x", c: ObjectId("0102030405060708090a0b0c"), d: ISODate("2020-01-02T00:00:00Z"), e: [1.0, NumberLong(2)], f: {}, g: [], h: BinData(0, "eg=="), i: Code("x=1"), j: /a/i, k: Timestamp(1, 2), l: null, m: MinKey}`)
	if err != nil {
		t.Fatal(err)
	}
	want := `{a: 1, b: "x", c: 0102030405060708090a0b0c, d: 2020-01-02T00:00:00.000Z, e: [1, 2], f: {}, g: [], h: BinData(0, "7A"), i: Code("x=1"), j: /a/i, k: Timestamp(1, 2), l: null, m: MinKey}`
	if got := v.Computed(); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	if got := Missing.Computed(); got != "MISSING" {
		t.Errorf("what is missing is shown as %s", got)
	}
}

func TestCompareOrder(t *testing.T) {
	lines := [][]string{
		{`MinKey`}, {`missing`, `undefined`}, {`null`},
		{`NaN`, `NumberDecimal("NaN")`}, {`-Infinity`, `NumberDecimal("-Infinity")`}, {`NumberDecimal("-1E+6000")`}, {`-1e+308`},
		{`NumberLong("-9223372036854775808")`, `-9223372036854775808.0`}, {`-1`, `-1.0`, `NumberDecimal("-1.00")`},
		{`-5e-324`}, {`NumberDecimal("-1E-6000")`}, {`0`, `-0.0`, `NumberDecimal("-0")`, `NumberDecimal("0E+3")`}, {`NumberDecimal("1E-6000")`}, {`5e-324`},
		{`NumberDecimal("0.1")`}, {`0.1`}, {`0.5`, `NumberDecimal("0.5")`}, {`9007199254740992.0`, `NumberLong("9007199254740992")`, `NumberDecimal("9007199254740992")`},
		{`NumberDecimal("9007199254740992.5")`}, {`NumberLong("9007199254740993")`, `NumberDecimal("9007199254740993")`},
		{`NumberLong("9223372036854775807")`}, {`9223372036854775808.0`}, {`1e+308`}, {`NumberDecimal("1E+6000")`, `NumberDecimal("10E+5999")`}, {`Infinity`, `NumberDecimal("Infinity")`},
		{`""`, `Symbol("")`}, {`"a"`}, {`"a\x00"`}, {`"b"`}, {`{}`}, {`{ a: 1 }`, `{ a: 1.0 }`}, {`{ a: 1, b: 1 }`}, {`{ b: 0 }`}, {`{ a: "x" }`}, {`[]`}, {`[ 1 ]`}, {`[ 1, 1 ]`}, {`[ 2 ]`},
		{`BinData(0, "")`}, {`BinData(5, "AA==")`}, {`BinData(0, "AAA=")`}, {`ObjectId("000000000000000000000000")`}, {`false`}, {`true`},
		{`Date(-1)`}, {`Date(0)`}, {`Timestamp(0, 1)`}, {`Timestamp(1, 0)`}, {`/a/`}, {`/a/i`}, {`/b/`}, {`Code("a")`}, {`Code("a", {})`}, {`MaxKey`},
	}
	for i, la := range lines {
		for j, lb := range lines {
			for _, a := range la {
				for _, b := range lb {
					if got, want := Compare(MustParse(a), MustParse(b)), cmpOrdered(i, j); got != want {
						t.Errorf("Compare(%s, %s) = %d, want %d", a, b, got, want)
					}
				}
			}
		}
	}
}

func TestArithmeticWidens(t *testing.T) {
	for _, c := range []struct{ a, op, b, want string }{
		{`1`, "+", `2`, `3`}, {`2147483647`, "+", `1`, `NumberLong(2147483648)`}, {`1`, "+", `1.5`, `2.5`},
		{`NumberLong(1)`, "+", `1`, `NumberLong(2)`}, {`1`, "+", `NumberDecimal("0.10")`, `NumberDecimal("1.10")`},
		{`-2147483648`, "-", `1`, `NumberLong(-2147483649)`}, {`3`, "*", `NumberLong(4)`, `NumberLong(12)`},
		{`0.1`, "+", `NumberDecimal("0.2")`, `NumberDecimal("0.300000000000000")`},
	} {
		f := map[string]func(a, b Value) (Value, bool){"+": Add, "-": Sub, "*": Mul}[c.op]
		got, ok := f(MustParse(c.a), MustParse(c.b))
		if !ok || got.Text() != c.want {
			t.Errorf("%s %s %s = %s, %v; want %s", c.a, c.op, c.b, got.Text(), ok, c.want)
		}
	}
	if _, ok := Add(Int64(math.MaxInt64), Int32(1)); ok {
		t.Error("an overflow of longs went unseen")
	}
	if _, ok := Mul(Int64(math.MinInt64), Int32(-1)); ok {
		t.Error("an overflow of longs went unseen")
	}
}

func TestDecimalRoundTrips(t *testing.T) {
	for _, s := range []string{"0", "-0", "1", "1.0", "1E+3", "9999999999999999999999999999999999E+6111", "1E-6176", "-1.5E-10", "Infinity", "-Infinity", "NaN",
		"1234567890123456789012345678901234"} {
		d, err := ParseDecimal128(s)
		if err != nil {
			t.Fatal(s, err)
		}
		if got := DecimalFromAPD(d.APD()); got != d && s != "NaN" {
			t.Errorf("%s came back as %s", s, got)
		}
	}
	huge := MustParse(`NumberDecimal("9999999999999999999999999999999999E+6111")`)
	if sum, _ := Add(huge, huge); sum.Decimal().Inf() != 1 {
		t.Errorf("sum of the largest decimals is %s", sum.Text())
	}
}

func TestExactDoubles(t *testing.T) {
	for _, f := range []float64{0.1, 1, -3.75, 5e-324, math.MaxFloat64, 1 << 60} {
		got := exact(Double(f))
		want := new(big.Rat).SetFloat64(f)
		back, ok := new(big.Rat).SetString(got.Text('f'))
		if !ok || back.Cmp(want) != 0 {
			t.Errorf("%v is not exactly %s", f, got)
		}
	}
}

func TestValidateRefuses(t *testing.T) {
	good := MustDoc(`{ a: 1, s: "x", o: { b: [ 1, 2 ] }, c: Code("x", { y: 1 }), r: /a/i, b: BinData(2, "AQ=="), p: DBPointer("a", ObjectId("0102030405060708090a0b0c")) }`)
	if err := Validate(good, 10); err != nil {
		t.Fatal(err)
	}
	if err := Validate(good, 2); err != ErrTooDeep {
		t.Errorf("depth 3 under a limit of 2: %v", err)
	}
	for i := range good {
		for _, x := range []byte{0, 1, 0x7f, 0xff} {
			bad := good.Clone()
			bad[i] = x
			if Validate(bad, 10) == nil {
				_ = bad.Text() // what is found valid must be safe to walk
			}
		}
		if Validate(good[:i], 10) == nil {
			t.Errorf("the first %d bytes count as a document", i)
		}
	}
}

func FuzzValidate(f *testing.F) {
	f.Add([]byte(MustDoc(`{ a: 1, s: "x", o: { b: [ 1, 2 ] }, c: Code("x", { y: 1 }), r: /a/i }`)))
	f.Add([]byte(EmptyDoc))
	f.Fuzz(func(t *testing.T, b []byte) {
		if Validate(b, MaxDepth) != nil {
			return
		}
		d := Doc(b)
		_ = d.Text()
		_ = d.String()
		if CompareDocs(d, d.Clone(), nil) != 0 {
			t.Error("a document differs from itself")
		}
	})
}

func BenchmarkLookup8thOf12(b *testing.B) {
	d := MustDoc(`{ a: 1, b: "some text", c: 2.0, d: ObjectId("0102030405060708090a0b0c"), e: true, f: [1,2,3], g: "more", h: 7, i: 1, j: 2, k: 3, l: 4 }`)
	b.ReportAllocs()
	for b.Loop() {
		if d.Lookup("h").Int32() != 7 {
			b.Fatal("not found")
		}
	}
}

// Messages show the beginning of what is long.
func TestStringsOfLongValues(t *testing.T) {
	long, data := strings.Repeat("x", 200), make([]byte, 81)
	for _, c := range []struct {
		v    Value
		want string
	}{
		{String(long[:159]), `"` + long[:159] + `"`},
		{String(long[:160]), `"` + long[:150] + `..."`},
		{String(long[:149] + "ü" + long), `"` + long[:149] + `..."`},
		{Code(long[:79]), long[:79]},
		{Code(long[:80]), long[:70] + "..."},
		{Build().Binary("", 0, data[:80]).Doc().Lookup(""), "BinData(0, " + strings.Repeat("00", 80) + ")"},
		{Build().Binary("", 0, data).Doc().Lookup(""), "BinData(0, " + strings.Repeat("00", 70) + "...)"},
	} {
		if got := c.v.String(); got != c.want {
			t.Errorf("%s, not %s", got, c.want)
		}
	}
}
