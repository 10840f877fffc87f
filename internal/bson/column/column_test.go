package column

import (
	"encoding/base64"
	"encoding/binary"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/ebbdb/ebb/internal/bson"
)

var generous = Limits{Values: 100_000, Bytes: 1 << 20}

// ofMongoDB are columns of buckets that MongoDB has made.
var ofMongoDB = map[string]struct{ column, want string }{
	"ids":      {"BwBpEgidgwL3sOyO70WAGwAAAAAAAAAA", "ObjectId('6912089d8302f7b0ec8eef45') ObjectId('6912089d8302f7b0ec8eef44') ObjectId('6912089d8302f7b0ec8eef43') ObjectId('6912089d8302f7b0ec8eef42') ObjectId('6912089d8302f7b0ec8eef41')"},
	"more ids": {"BwBpaQ5kKmiNEQMoTQyAK2AAEPwXANQA", "ObjectId('69690e642a688d1103284d0c') ObjectId('69690e672a688d1103284d0d') ObjectId('69690e6b2a688d1103284d0e') ObjectId('69690e6c2a688d1103284d0f') ObjectId('69690ea22a688d1103284d10')"},
	"dates":    {"CQAg6EDOfQEAAIEMTB0AAAAAAA4AAAAAAAAAAA==", "new Date(1639842900000) new Date(1639842960000) new Date(1639843020000) new Date(1639843080000) new Date(1639843140000)"},
	"times":    {"CQDpOGDCmwEAAICLLuFtJFWCTwA=", "new Date(1768492644585) new Date(1768492647005) new Date(1768492651183) new Date(1768492652636) new Date(1768492649000)"},
	"prices":   {"AQApXI/C9cBvQLD7BBgAHAK2AAA=", "254.03 253.63 253.61 252.93 252.47"},
	"volumes":  {"AQAAAAAAwKnjQJB7C0YAo3jwqwA=", "40270.0 27890.0 40182.0 44042.0 55046.0"},
	"letters":  {"AgACAAAAYQCBLAAAAgAgAADOPwwAAAAAAAA=", `"a" "b" "c" "d" "bb"`},
	"one int":  {"EAAqAAAAAA==", "42"},
	"a thousand": {"AQAAAAAAAAAAQJN/AAAAAAAAAAIAAAAAAAAABwAAAAAAAAAOAAAAAAAAAAA=",
		strings.TrimSpace(strings.Repeat("2.0 ", 1000))},
}

func show(values []bson.Value) string {
	out := make([]string, len(values))
	for i, v := range values {
		if out[i] = v.String(); v.IsMissing() {
			out[i] = "-"
		}
	}
	return strings.Join(out, " ")
}

func decoded(t testing.TB, text string) []byte {
	t.Helper()
	data, err := base64.StdEncoding.DecodeString(text)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

func TestDecodeMongoDBs(t *testing.T) {
	for name, test := range ofMongoDB {
		t.Run(name, func(t *testing.T) {
			values, err := Decode(decoded(t, test.column), generous)
			if got := show(values); err != nil || got != test.want {
				t.Errorf("%s, %v; want %s", got, err, test.want)
			}
		})
	}
}

// parts is a column of these parts, with its end.
func parts(all ...any) (b []byte) {
	for _, part := range all {
		switch p := part.(type) {
		case string: // a literal
			v := bson.MustDoc("{v: " + p + "}").Lookup("v")
			b = append(append(b, byte(v.Type), 0), v.Data...)
		case object:
			b = append(append(b, p.control), bson.MustDoc(p.text)...)
		case []uint64: // blocks
			b = append(b, 0x80|byte(len(p)-1))
			for _, word := range p {
				b = binary.LittleEndian.AppendUint64(b, word)
			}
		case byte:
			b = append(b, p)
		}
	}
	return append(b, 0)
}

// object is the reference of what was taken apart.
type object struct {
	control byte
	text    string
}

func words(all ...uint64) []uint64 { return all }

// Words with one value of 60 bits, and with one of 51 and how many half bytes of zeros follow it.
func one(slot uint64) uint64             { return slot<<4 | 14 }
func shifted(value, zeros uint64) uint64 { return (value<<5|zeros)<<8 | 13<<4 | 8 }
func run(times uint64) uint64            { return (times-1)<<4 | 15 }
func zigzag(n int64) uint64              { return uint64(n)<<1 ^ uint64(n>>63) }
func repeated(text string, n int) string { return strings.TrimSpace(strings.Repeat(text+" ", n)) }
func numbers(slots ...uint64) (w uint64) { // of 20 bits
	for i, s := range slots {
		w |= s << (20 * i)
	}
	return w<<4 | 12
}

const none20 = 1<<20 - 1

func TestDecode(t *testing.T) {
	for _, test := range []struct {
		name   string
		column []byte
		want   string
	}{
		{"nothing", parts(), ""},
		{"literals of many types", parts("1", "'a'", "null", "{a: 1}", "[1]", "MinKey", "MaxKey", "/a/i"), "1 \"a\" null { a: 1 } [ 1 ] MinKey MaxKey /a/i"},
		{"what was missing first", parts(words(numbers(none20, none20, none20)), "5"), "- - - 5"},
		{"missing among differences", parts("NumberLong(5)", words(numbers(zigzag(1), none20, zigzag(-3)))), "5 6 - 3"},
		{"a run repeats the difference, in the next blocks too", parts("1", words(one(zigzag(2))), words(run(1))), "1 3 " + func() string {
			var b strings.Builder
			for i := range runLength {
				fmt.Fprintf(&b, "%d ", 5+2*i)
			}
			return strings.TrimSpace(b.String())
		}()},
		{"a run behind a literal repeats it", parts("'x'", words(run(1))), repeated(`"x"`, 1+runLength)},
		{"a run of what is missing", parts("1", words(numbers(0, 0, none20), run(1))), "1 1 1 - " + repeated("-", runLength)},
		{"booleans", parts("false", words(numbers(zigzag(1), 0, zigzag(-1)))), "false true true false"},
		{"dates count what the steps change by", parts("Date(1000)", words(numbers(zigzag(10), 0, zigzag(-20)))), "new Date(1000) new Date(1010) new Date(1020) new Date(1010)"},
		{"doubles as bits", parts("1.5", words(one(zigzag(1<<40)))), "1.5 1.500244140625"},
		{"decimals", parts("NumberDecimal('1')", words(one(zigzag(1)))), "1 2"},
		{"strings whose beginning changes", parts("'ab'", words(shifted(zigzag(1), 2))), `"ab" "bb"`},
		{"a string that grows to sixteen", parts("'b'", words(shifted(2, 30))), "\"b\" \"\x01" + strings.Repeat("\x00", 14) + "b\""},
		{"binary data", parts("BinData(0, 'AAE=')", words(one(zigzag(1)))), "BinData(0, 0001) BinData(0, 0101)"},
		{"the same document again", parts("{a: 1}", words(numbers(0, none20, 0))), "{ a: 1 } { a: 1 } - { a: 1 }"},
		{"objects taken apart", parts(object{interleaved, "{a: 1, b: {c: 'x', d: [1, 2]}, e: {}}"},
			words(numbers(0, zigzag(1), none20)), words(numbers(0, 0, none20)), words(numbers(0, none20, none20)), words(numbers(0, none20, none20)), byte(end)),
			`{ a: 1, b: { c: "x", d: [ 1, 2 ] }, e: {} } { a: 2, b: { c: "x" }, e: {} } { e: {} }`},
		{"an object without fields is missing", parts(object{interleaved, "{a: 1}"}, words(numbers(0, none20, 0)), byte(end)), "{ a: 1 } - { a: 1 }"},
		{"fields with literals of other types", parts(object{interleaved, "{a: 1, b: 2}"}, words(one(0)), words(one(0)), "'x'", "Date(1)", words(one(0)), words(one(zigzag(3))), byte(end)),
			`{ a: 1, b: 2 } { a: "x", b: new Date(1) } { a: "x", b: new Date(4) }`},
		{"arrays are kept whole in the old form", parts(object{interleavedOld, "{a: [1, 2]}"}, words(one(0)), byte(end)), "{ a: [ 1, 2 ] }"},
		{"arrays taken apart", parts(object{interleavedArrays, "{'0': 1, '1': 2}"}, words(numbers(0, zigzag(1), 0)), words(numbers(0, 0, zigzag(1))), byte(end)), "[ 1, 2 ] [ 2, 2 ] [ 2, 3 ]"},
		{"the last object again, and other values behind it", parts(object{interleaved, "{a: 1}"}, words(numbers(0, zigzag(1), 0)), byte(end), words(one(0)), "7"), "{ a: 1 } { a: 2 } { a: 2 } { a: 2 } 7"},
	} {
		t.Run(test.name, func(t *testing.T) {
			values, err := Decode(test.column, generous)
			if got := show(values); err != nil || got != test.want {
				t.Errorf("%s, %v; want %s", got, err, test.want)
			}
			for _, v := range values {
				if v.Type == bson.TypeObject || v.Type == bson.TypeArray {
					if err := bson.Validate(v.Data, bson.MaxDepth); err != nil {
						t.Error(err)
					}
				}
			}
		})
	}
}

// TestSelectors: each block holds as many values as its selector says.
func TestSelectors(t *testing.T) {
	counts := map[uint64]int{1: 60, 2: 30, 3: 20, 4: 15, 5: 12, 6: 10, 7: 8, 8: 7, 9: 6, 10: 5, 11: 4, 12: 3, 13: 2, 14: 1}
	for extension, n := range []int{1: 9, 2: 8, 3: 7, 4: 6, 5: 5, 6: 4, 7: 3, 8: 2, 9: 1} {
		counts[uint64(extension)<<4|7] = max(n, counts[uint64(extension)<<4|7])
	}
	for extension, n := range []int{1: 7, 2: 6, 3: 5, 4: 4, 5: 3, 6: 2, 7: 1, 8: 6, 9: 5, 10: 4, 11: 3, 12: 2, 13: 1} {
		counts[uint64(extension)<<4|8] = max(n, counts[uint64(extension)<<4|8])
	}
	for selector := range uint64(256) {
		low := selector & 15
		if low != 7 && low != 8 {
			selector = low
		}
		values, err := Decode(parts("1", words(selector)), generous)
		switch want, ok := counts[selector]; {
		case low == 15:
		case ok && (err != nil || len(values) != 1+want):
			t.Errorf("selector %#x: %d values, %v; want %d", selector, len(values)-1, err, want)
		case !ok && !errors.Is(err, ErrInvalid):
			t.Errorf("selector %#x: %v", selector, err)
		}
	}
}

func TestInvalid(t *testing.T) {
	valid := parts("1", words(one(2)))
	deep := []byte(bson.MustDoc("{a: 1}"))
	for range bson.MaxDepth {
		deep = bson.Build().Document("a", deep).Doc()
	}
	for name, column := range map[string][]byte{
		"nothing at all":                   {},
		"no end":                           valid[:len(valid)-1],
		"cut blocks":                       append(valid[:len(valid)-4:len(valid)-4], 0),
		"more behind its end":              append(valid[:len(valid):len(valid)], 0),
		"a literal with a name":            {0x10, 'a', 0, 1, 0, 0, 0, 0},
		"a cut literal":                    {0x10, 0, 1, 0},
		"a literal of no type":             {0x15, 0, 0},
		"a document that is none":          {0x03, 0, 9, 0, 0, 0, 1, 1, 1, 1, 0, 0},
		"nests too deep":                   append(append([]byte{0x03, 0}, deep...), 0),
		"a control byte of no kind":        {0x40, 0},
		"a scale for an int":               append([]byte{0x10, 0, 1, 0, 0, 0, 0x90}, valid[7:]...),
		"a double without that scale":      append(append([]byte{0x01, 0}, append(bson.Double(0.3).Data, 0x90)...), append(make([]byte, 8), 0)...),
		"documents that differ":            parts("{a: 1}", words(one(2))),
		"binary data too long to differ":   parts("BinData(0, 'AAAAAAAAAAAAAAAAAAAAAAAAAAAA')", words(one(2))),
		"a difference out of range":        parts("1", words(shifted(2, 30))),
		"an object that differs":           parts(object{interleaved, "{a: 1}"}, words(one(0)), byte(end), words(one(2))),
		"a reference without fields":       parts(object{interleaved, "{}"}, words(one(0)), byte(end)),
		"a reference and nothing":          parts(object{interleaved, "{a: 1}"}),
		"fields that are not there":        parts(object{interleaved, "{a: 1, b: 1}"}, words(one(0)), byte(end)),
		"fields of more objects":           parts(object{interleaved, "{a: 1, b: 1}"}, words(one(0)), words(numbers(0, 0, 0)), byte(end)),
		"objects among fields":             parts(object{interleaved, "{a: 1, b: 1}"}, words(one(0)), object{interleaved, "{a: 1}"}),
		"a reference that is no document":  {interleaved, 9, 0, 0, 0, 1, 1, 1, 1, 0},
		"binary data whose length changes": parts("BinData(2, 'AAAAAA==')", words(one(2))),
	} {
		if values, err := Decode(column, generous); !errors.Is(err, ErrInvalid) {
			t.Errorf("%s: %s, %v", name, show(values), err)
		}
	}
}

// TestLimits: what a few bytes grow to has an end.
func TestLimits(t *testing.T) {
	many := words(run(16), run(16), run(16), run(16), run(16), run(16), run(16), run(16))
	long := strings.Repeat("x", 1000)
	for name, column := range map[string][]byte{
		"values":  parts("1", many),
		"bytes":   parts("'"+long+"'", words(run(16))),
		"objects": parts(object{interleaved, "{a: '" + long + "', b: 1}"}, words(run(1)), words(run(1)), byte(end)),
		"steps":   parts(object{interleaved, "{a: 1, b: {c: {}, d: {}, e: {}, f: {}, g: {}, h: {}, i: {}, j: {}, k: {}, l: {}, m: {}, n: {}}}"}, words(none(), run(16)), byte(end)),
	} {
		if values, err := Decode(column, Limits{Values: 10_000, Bytes: 50_000}); !errors.Is(err, ErrInvalid) || !strings.Contains(err.Error(), "more than") {
			t.Errorf("%s: %d values, %v", name, len(values), err)
		}
	}
}

// none is a word with one value that is missing.
func none() uint64 { return one(1<<60 - 1) }

func FuzzDecode(f *testing.F) {
	for _, c := range ofMongoDB {
		f.Add(decoded(f, c.column))
	}
	f.Add(parts(object{interleaved, "{a: 1, b: {c: 'x', d: [1, 2]}, e: {}}"}, words(one(0)), words(one(0)), words(one(0)), words(one(0)), byte(end), "7"))
	f.Fuzz(func(t *testing.T, data []byte) {
		values, err := Decode(data, Limits{Values: 5000, Bytes: 100_000})
		if err != nil && !errors.Is(err, ErrInvalid) {
			t.Error(err)
		}
		for _, v := range values {
			if err := bson.Validate(bson.Build().Value("v", v).Doc(), bson.MaxDepth+1); err != nil {
				t.Errorf("%v: %v", v, err)
			}
		}
	})
}
