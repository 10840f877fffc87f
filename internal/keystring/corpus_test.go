package keystring_test

import (
	"encoding/binary"
	"fmt"
	"math"
	"math/rand/v2"
	"strings"

	"github.com/ebbdb/ebb/internal/bson"
)

// corpus is values that sit close to each other, of all types.
func corpus() []bson.Value {
	var vs []bson.Value
	vs = append(vs, numbers()...)
	vs = append(vs, texts()...)
	vs = append(vs, bson.MinKey, bson.MaxKey, bson.Null, bson.Undefined, bson.Missing, bson.True, bson.False)
	for _, ms := range []int64{0, 1, -1, math.MinInt64, math.MaxInt64, 1700000000000, 255, 256, -256} {
		vs = append(vs, bson.Date(ms))
	}
	for _, t := range []uint32{0, 1, 256, math.MaxUint32} {
		vs = append(vs, bson.Timestamp(t, 0), bson.Timestamp(t, 1), bson.Timestamp(t, math.MaxUint32))
	}
	vs = append(vs, bson.ObjectID([12]byte{}), bson.ObjectID([12]byte{1}), bson.ObjectID([12]byte{0: 255, 11: 255}))
	for _, n := range []int{0, 1, 2, 5, 254, 255, 256, 70000} {
		for _, subtype := range []byte{0, 3, 255} {
			data := make([]byte, n)
			vs = append(vs, bson.Binary(subtype, data))
			if n > 0 {
				data = append([]byte(nil), data...)
				data[n-1] = 255
				vs = append(vs, bson.Binary(subtype, data))
			}
		}
	}
	vs = append(vs, bson.Binary(2, []byte{1, 0, 0, 0, 'x'}))
	for _, text := range []string{
		`/a/`, `/a/i`, `/a/im`, `/ab/`, `/b/`,
		`{}`, `{a:1}`, `{a:1.0}`, `{a:1,b:2}`, `{a:2}`, `{b:1}`, `{a:""}`, `{"":1}`, `{a:{}}`, `{a:{b:1}}`, `{a:{b:1},c:1}`, `{a:[]}`,
		`{a:MinKey}`, `{a:MaxKey}`, `{a:null}`, `{aa:1}`, `{a:true}`, `{a:false}`, `{a:NumberLong(1)}`, `{a:"x",b:1.5}`, `{a:-1}`, `{a:0}`, `{a:NaN}`,
		`[]`, `[1]`, `[1,2]`, `[1,2.0]`, `[2]`, `[[]]`, `[[1],2]`, `[{}]`, `[{a:1}]`, `[null]`, `[MinKey]`, `[MaxKey]`, `[""]`, `["a"]`, `["a","b"]`, `["ab"]`, `[-1]`, `[-1,5]`,
	} {
		vs = append(vs, bson.MustParse(text))
	}
	deep := bson.MustParse(`[1]`)
	for range 150 {
		deep = bson.ArrayOf(deep)
	}
	vs = append(vs, deep)
	for _, code := range []string{"", "f()", "f()\x00", "g()"} {
		vs = append(vs, bson.Code(code))
		for _, scope := range []string{`{}`, `{a:1}`, `{a:NumberLong(1),b:"x"}`} {
			vs = append(vs, bson.CodeWithScope(code, bson.MustDoc(scope)))
		}
	}
	for _, ns := range []string{"", "db.c", "db.d", strings.Repeat("x", 300)} {
		vs = append(vs, dbPointer(ns, 0), dbPointer(ns, 255))
	}
	return distinct(vs)
}

func distinct(vs []bson.Value) (out []bson.Value) {
	seen := map[string]bool{}
	for _, v := range vs {
		if id := string(append([]byte{byte(v.Type)}, v.Data...)); !seen[id] {
			seen[id] = true
			out = append(out, v)
		}
	}
	return out
}

func texts() []bson.Value {
	var vs []bson.Value
	for _, s := range []string{"", "\x00", "\x00\x00", "\x00\x01", "\x00\xff", "\x01", "a", "a\x00", "a\x00b", "a\x00\xff", "a\x01", "ab", "b", "é", "\xff", "\xff\xff", strings.Repeat("long", 50)} {
		vs = append(vs, bson.String(s), bson.Symbol(s))
	}
	return vs
}

func dbPointer(ns string, id byte) bson.Value {
	data := binary.LittleEndian.AppendUint32(nil, uint32(len(ns)+1))
	data = append(append(data, ns...), 0)
	return bson.Value{Type: bson.TypeDBPointer, Data: append(data, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, id)}
}

// numbers are the ones at which types and forms meet, each as every type that can hold it or something near.
func numbers() []bson.Value {
	var vs []bson.Value
	whole := []int64{0, 1, 2, 3, 5, 7, 10, 100, 127, 128, 255, 1000, 2047, 2048, math.MaxInt32, math.MaxInt32 + 1, 1 << 32, 1<<53 - 1, 1 << 53, 1<<53 + 1, 1<<53 + 2, 1<<53 + 3,
		1 << 60, 1<<62 + 1, 1000000000000000000, 999999999999999999, math.MaxInt64 - 1024, math.MaxInt64 - 1, math.MaxInt64}
	for _, n := range whole {
		for _, n := range []int64{n, -n} {
			vs = append(vs, bson.Int64(n), bson.Double(float64(n)), decimal(fmt.Sprint(n)), decimal(fmt.Sprint(n)+".0"), decimal(fmt.Sprint(n, "E-2")), decimal(fmt.Sprint(n, "E+3")))
			if int64(int32(n)) == n {
				vs = append(vs, bson.Int32(int32(n)))
			}
		}
	}
	vs = append(vs, bson.Int32(math.MinInt32), bson.Int64(math.MinInt64), bson.Double(math.MinInt64), decimal("-9223372036854775808"), decimal("-9223372036854775809"), decimal("9223372036854775808"), decimal("18446744073709551615"), decimal("18446744073709551616"), decimal("18446744073709551617"))
	for _, f := range []float64{0.1, 0.5, 0.25, 1.5, 19.99, 1e-3, 1e10, 1e22, 1e23, 1e100, 1e300, math.MaxFloat64, math.SmallestNonzeroFloat64, 3 * math.SmallestNonzeroFloat64, 2.2250738585072014e-308, math.Pi, 1.0 / 3, 5e-324, 1e-30, 1e-27, 1e-28, 1e18, 1e19, 4503599627370497.5} {
		for _, f := range []float64{f, math.Nextafter(f, 0), math.Nextafter(f, math.Inf(1))} {
			for _, f := range []float64{f, -f} {
				vs = append(vs, bson.Double(f))
				if !math.IsInf(f, 0) {
					vs = append(vs, bson.Decimal(bson.DecimalFromFloat(f)), decimal(fmt.Sprintf("%.33e", f)), decimal(fmt.Sprintf("%.16e", f)))
				}
			}
		}
	}
	vs = append(vs, bson.Double(math.NaN()), bson.Double(math.Float64frombits(0xFFF8000000000001)), bson.Decimal(bson.DecimalNaN), bson.Decimal(bson.Decimal128{High: 0xFC00 << 48, Low: 7}),
		bson.Double(math.Inf(1)), bson.Double(math.Inf(-1)), bson.Decimal(bson.DecimalInf(false)), bson.Decimal(bson.DecimalInf(true)), bson.Double(math.Copysign(0, -1)),
		bson.Decimal(bson.Decimal128{High: 0x7800<<48 | 5})) // an infinity with something in it
	for _, text := range []string{"0.1", "0.10", "0.100", "0.2", "0.5", "0.50", "0E+10", "-0", "0.00", "0E-6176", "0E+6111", "1E+6111", "9.999999999999999999999999999999999E+6144", "1E-6176", "9E-6176", "1E-400", "1E-324", "2E-324", "3E-324", "5E-324",
		"4.940656458412465441765687928682214E-324", "1E+308", "1.797693134862315708145274237317043E+308", "1.797693134862315708145274237317044E+308", "1.8E+308", "1E+309", "1E+400",
		"9007199254740993", "9007199254740992.5", "9007199254740993.000", "0.1000000000000000055511151231257827", "0.1000000000000000055511151231257828", "123456789012345678901234567890.1234", "1234567890123456789012345678901234", "9999999999999999999999999999999999",
		"9999999999999999999999999999999998", "1.5", "1.50", "19.99", "19.990", "99999999999999999999E+2", "12345678901234567891E+3"} {
		vs = append(vs, decimal(text))
		if text[0] != '-' {
			vs = append(vs, decimal("-"+text))
		}
	}
	// Coefficients of more than 34 digits are zeros that are not canonical.
	return append(vs, bson.Decimal(bson.Decimal128{High: 0x3041FFFFFFFFFFFF, Low: 1}), bson.Decimal(bson.Decimal128{High: 0x6C10000000000000, Low: 1}))
}

func decimal(text string) bson.Value {
	d, err := bson.ParseDecimal128(text)
	if err != nil {
		panic(text)
	}
	return bson.Decimal(d)
}

// randomNumber is often near another one that was made before.
func randomNumber(rng *rand.Rand) bson.Value {
	switch rng.IntN(6) {
	case 0:
		return bson.Int32(int32(rng.Uint32()) >> rng.IntN(32))
	case 1:
		return bson.Int64(int64(rng.Uint64()) >> rng.IntN(64))
	case 2:
		return bson.Double(math.Float64frombits(rng.Uint64()))
	case 3:
		return bson.Double(float64(int64(rng.Uint64())>>rng.IntN(64)) / float64(int64(1)<<rng.IntN(20)))
	case 4: // a decimal around a double
		f := math.Float64frombits(rng.Uint64())
		if f != f || math.IsInf(f, 0) {
			f = 0.1
		}
		if rng.IntN(2) == 0 {
			f = float64(rng.IntN(2000)-1000) / 100
		}
		return decimal(fmt.Sprintf("%.*e", rng.IntN(34), f))
	default: // any bits at all, with exponents that are not all extreme
		d := bson.Decimal128{High: rng.Uint64(), Low: rng.Uint64()}
		if rng.IntN(2) == 0 {
			d = bson.DecimalFromParts(rng.IntN(2) == 0, 0, rng.Uint64()>>rng.IntN(64), rng.IntN(80)-40)
		}
		return bson.Decimal(d)
	}
}
