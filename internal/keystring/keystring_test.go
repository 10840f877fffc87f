package keystring_test

import (
	"bytes"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/ebbdb/ebb/internal/bson"
	"github.com/ebbdb/ebb/internal/keystring"
	"github.com/ebbdb/ebb/internal/testseed"
)

func key(v bson.Value, desc bool) []byte { return keystring.Append(nil, v, desc) }

// checkPair compares the order of two keys with that of the values, followed by things that must not matter.
func checkPair(t *testing.T, a, b bson.Value) {
	t.Helper()
	want := bson.Compare(a, b)
	ka, kb := key(a, false), key(b, false)
	if got := bytes.Compare(ka, kb); got != want {
		t.Fatalf("%s and %s: values compare %d, keys %d\n%x\n%x", a.Text(), b.Text(), want, got, ka, kb)
	}
	if want == 0 {
		return
	}
	if bytes.HasPrefix(ka, kb) || bytes.HasPrefix(kb, ka) {
		t.Fatalf("%s and %s: one key begins with the other\n%x\n%x", a.Text(), b.Text(), ka, kb)
	}
	if got := bytes.Compare(key(a, true), key(b, true)); got != -want {
		t.Fatalf("%s and %s: values compare %d, descending keys %d", a.Text(), b.Text(), want, got)
	}
}

func TestOrderOfAllPairs(t *testing.T) {
	vs := corpus()
	t.Logf("%d values", len(vs))
	for i, a := range vs {
		for _, b := range vs[i:] {
			checkPair(t, a, b)
		}
	}
}

func TestOrderOfRandomNumbers(t *testing.T) {
	seed := testseed.Of(t)
	rng := rand.New(rand.NewPCG(seed, 0))
	for range 200 {
		vs := make([]bson.Value, 40)
		for i := range vs {
			vs[i] = randomNumber(rng)
			checkRoundTrip(t, vs[i])
		}
		for i, a := range vs {
			for _, b := range vs[i:] {
				checkPair(t, a, b)
			}
		}
	}
}

func checkRoundTrip(t *testing.T, v bson.Value) {
	t.Helper()
	bits := keystring.AppendTypeBits(nil, v)
	for _, desc := range []bool{false, true} {
		k := append(key(v, desc), "tail"...)
		got, rest, err := keystring.Decode(nil, k, bits, 1)
		if err != nil {
			t.Fatalf("%s: %v, key %x, type bits %x", v.Text(), err, k, bits)
		}
		if string(rest) != "tail" || !bson.Identical(got[0], v) {
			t.Fatalf("%s came back as %s (%x as %x), rest %q, key %x, type bits %x", v.Text(), got[0].Text(), v.Data, got[0].Data, rest, k, bits)
		}
		plain, _, err := keystring.Decode(nil, k, nil, 1)
		if err != nil || bson.Compare(plain[0], v) != 0 {
			t.Fatalf("%s came back without its type bits as %s, %v", v.Text(), plain[0].Text(), err)
		}
		if n, err := keystring.Skip(k); err != nil || n != len(k)-4 {
			t.Fatalf("%s: skips %d of %x, %v", v.Text(), n, k, err)
		}
		for n := range len(k) - 4 {
			if _, err := keystring.Skip(k[:n]); err == nil {
				t.Fatalf("%s: the first %d bytes of %x pass for a whole value", v.Text(), n, k)
			}
		}
	}
}

func TestRoundTrip(t *testing.T) {
	for _, v := range corpus() {
		if len(v.Data) < 1000 {
			checkRoundTrip(t, v)
		}
	}
}

// TestCompound puts whole lists of values into one key, with directions of their own.
func TestCompound(t *testing.T) {
	seed := testseed.Of(t)
	rng := rand.New(rand.NewPCG(seed, 0))
	vs := corpus()
	vs = slices.DeleteFunc(vs, func(v bson.Value) bool { return len(v.Data) > 1000 })
	dirs := []bool{false, true, false}
	for range 3000 {
		pick := func() (list []bson.Value, k []byte) {
			for _, desc := range dirs {
				v := vs[rng.IntN(len(vs))]
				if rng.IntN(2) == 0 {
					v = vs[rng.IntN(5)] // so that the first ones are often equal
				}
				list, k = append(list, v), keystring.Append(k, v, desc)
			}
			return list, k
		}
		a, ka := pick()
		b, kb := pick()
		want := 0
		for i, desc := range dirs {
			if want = bson.Compare(a[i], b[i]); want != 0 {
				if desc {
					want = -want
				}
				break
			}
		}
		if got := bytes.Compare(ka, kb); got != want {
			t.Fatalf("%v and %v: lists compare %d, keys %d", a, b, want, got)
		}
		got, rest, err := keystring.Decode(nil, ka, keystring.AppendTypeBits(nil, a...), len(a))
		if err != nil || len(rest) != 0 || !slices.EqualFunc(got, a, bson.Identical) {
			t.Fatalf("%v came back as %v, %v", a, got, err)
		}
	}
}

func TestTypeBitsAreEmptyByDefault(t *testing.T) {
	doc := bson.MustParse(`{a:1,b:[1,2,{c:"x"}],d:NumberLong("4000000000"),e:19.99,f:NumberDecimal("19.99"),g:NumberDecimal("0.1"),h:NumberLong("9007199254740993"),i:1e300,k:0,l:null,m:true,n:Infinity}`)
	if bits := keystring.AppendTypeBits(nil, doc, bson.Double(math.Float64frombits(0x7FF8000000000000)), bson.String("x")); len(bits) != 0 {
		t.Fatalf("type bits %x", bits)
	}
	if bits := keystring.AppendTypeBits(nil, doc, bson.Int64(0)); len(bits) > 2 {
		t.Fatalf("type bits of one long: %x", bits)
	}
}

func TestDate(t *testing.T) {
	for _, ms := range []int64{0, 1, -1, 1 << 62, -1 << 63, 1<<63 - 1} {
		for _, desc := range []bool{false, true} {
			k := keystring.AppendDate(nil, ms, desc)
			if !bytes.Equal(k, key(bson.Date(ms), desc)) {
				t.Fatalf("%d: %x", ms, k)
			}
			if got, ok := keystring.Date(append(k, "id"...)); !ok || got != ms {
				t.Fatalf("%d came back as %d, %v", ms, got, ok)
			}
		}
	}
	for _, v := range []bson.Value{bson.Null, bson.Int64(5), bson.Timestamp(1, 1), bson.MinKey, bson.MaxKey} {
		for _, desc := range []bool{false, true} {
			if _, ok := keystring.Date(append(key(v, desc), make([]byte, 12)...)); ok {
				t.Fatalf("%s passes for a date", v.Text())
			}
		}
	}
	if _, ok := keystring.Date(nil); ok {
		t.Fatal("nothing passes for a date")
	}
}

func TestTypeBounds(t *testing.T) {
	vs := corpus()
	one := map[int]bson.Value{} // of each class
	for _, v := range vs {
		one[v.Type.Class()] = v
	}
	for _, v := range vs {
		for _, w := range one {
			for _, desc := range []bool{false, true} {
				k := key(v, desc)
				low, high := keystring.AppendTypeLow(nil, w.Type, desc), keystring.AppendTypeHigh(nil, w.Type, desc)
				inside := bytes.Compare(k, low) >= 0 && bytes.Compare(k, high) < 0
				if inside != (v.Type.Class() == w.Type.Class()) {
					t.Fatalf("%s among those of type %s, descending %v: %v", v.Text(), w.Type, desc, inside)
				}
			}
		}
	}
}

func TestSuccessor(t *testing.T) {
	for _, c := range [][2]string{{"a", "b"}, {"a\xff", "b"}, {"a\xff\xff", "b"}, {"\x00", "\x01"}, {"\xfe\xff", "\xff"}} {
		if got := keystring.Successor([]byte(c[0])); string(got) != c[1] {
			t.Errorf("after %q comes %q, want %q", c[0], got, c[1])
		}
	}
	for _, last := range []string{"", "\xff", "\xff\xff"} {
		if got := keystring.Successor([]byte(last)); got != nil {
			t.Errorf("after %q comes %q", last, got)
		}
	}
	for _, v := range corpus() {
		for _, desc := range []bool{false, true} {
			k := key(v, desc)
			next := keystring.Successor(bytes.Clone(k))
			if bytes.Compare(next, append(bytes.Clone(k), bytes.Repeat([]byte{0xFF}, 20)...)) <= 0 {
				t.Fatalf("%s: %x is not after all of %x", v.Text(), next, k)
			}
		}
	}
}

// upper is a collation in which case does not matter, with sort keys that hold zeros.
type upper struct{}

func (upper) AppendKey(dst []byte, s string) []byte {
	for _, c := range bytes.ToUpper([]byte(s)) {
		dst = append(dst, 0, c)
	}
	return dst
}

func (upper) CompareString(a, b string) int {
	return bytes.Compare(bytes.ToUpper([]byte(a)), bytes.ToUpper([]byte(b)))
}

func TestCollated(t *testing.T) {
	var vs []bson.Value
	for _, text := range []string{`""`, `"a"`, `"A"`, `"ab"`, `"B"`, `{a:"x"}`, `{a:"X"}`, `{A:"x"}`, `["a","B"]`, `["A","b"]`, `1`, `{a:["q",1]}`, `{a:["Q",1]}`} {
		vs = append(vs, bson.MustParse(text))
	}
	for _, a := range vs {
		for _, b := range vs {
			want := bson.CompareWith(a, b, upper{})
			ka, kb := keystring.AppendCollated(nil, a, false, upper{}), keystring.AppendCollated(nil, b, false, upper{})
			if got := bytes.Compare(ka, kb); got != want {
				t.Errorf("%s and %s: values compare %d, keys %d", a.Text(), b.Text(), want, got)
			}
		}
	}
}

func TestNoAllocations(t *testing.T) {
	buf := make([]byte, 0, 1024)
	for _, v := range []bson.Value{bson.Int32(5), bson.Int64(-1 << 60), bson.Int64(1<<53 + 1), bson.Double(19.99), decimal("19.99"), decimal("100"), decimal("0.5"), bson.String("text"), bson.String("te\x00xt"), bson.Date(5), bson.Null, bson.ObjectID([12]byte{}), bson.MustParse(`{a:[1,{b:"x"}]}`)} {
		if n := testing.AllocsPerRun(10, func() { keystring.Append(buf, v, true); keystring.AppendTypeBits(buf, v) }); n != 0 {
			t.Errorf("%s: %v allocations", v.Text(), n)
		}
	}
}

// TestHostileKeys: whatever stands in a key, reading it ends with an error or a value.
func TestHostileKeys(t *testing.T) {
	nested := bytes.Repeat([]byte{0x24}, 100_000) // arrays in arrays in arrays
	for _, k := range [][]byte{nil, nested, {0xFF}, {0x7F}, {0x00}, {0x28, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF}} {
		if _, err := keystring.Skip(k); err == nil {
			t.Errorf("%x skips", clip(k))
		}
		if v, _, err := keystring.Decode(nil, k, nil, 1); err == nil {
			t.Errorf("%x is %s", clip(k), v[0].Text())
		}
	}
	if v, _, err := keystring.Decode(nil, []byte{0x40, 0}, nil, 1); err == nil {
		t.Errorf("a dbPointer without bytes is %s", v[0].Text())
	}
	for _, c := range []struct {
		v    bson.Value
		bits []byte
	}{
		{bson.Int32(1), []byte{0x06}},                // a symbol
		{bson.Int32(1), []byte{0x04, 1}},             // half a double
		{bson.Int32(1), []byte{0x05, 1}},             // half a decimal
		{bson.Int32(1), []byte{0x80}},                // half a varint
		{bson.Int32(1), []byte{0x03, 40}},            // too many zeros
		{bson.Double(1.5), []byte{0x01}},             // no long
		{bson.Double(1e300), []byte{0x01}},           // no long
		{decimal("0.1"), []byte{0x02}},               // no double
		{bson.String("x"), []byte{0x01}},             // no long
		{bson.Undefined, []byte{0x06}},               // no symbol
		{bson.ArrayOf(bson.Undefined), []byte{0x07}}, // nothing is missing in an array
	} {
		if v, _, err := keystring.Decode(nil, key(c.v, false), c.bits, 1); err == nil {
			t.Errorf("%s with type bits %x is %s", c.v.Text(), c.bits, v[0].Text())
		}
	}
}

func clip(b []byte) []byte { return b[:min(len(b), 20)] }

func FuzzKeyString(f *testing.F) {
	for i, v := range corpus() {
		if v.Type != bson.TypeMissing && len(v.Data) < 300 && i%9 == 0 {
			f.Add([]byte(bson.Build().Value("", v).Doc()), []byte(bson.Build().Value("", bson.Int32(int32(i))).Doc()))
		}
	}
	f.Fuzz(func(t *testing.T, a, b []byte) {
		checkHostile(t, a, b)
		if bson.Validate(a, bson.MaxDepth) != nil || bson.Validate(b, bson.MaxDepth) != nil {
			return
		}
		va, vb := bson.Doc(a).Value(), bson.Doc(b).Value()
		checkPair(t, va, vb)
		for _, v := range []bson.Value{va, vb} {
			k := key(v, false)
			got, rest, err := keystring.Decode(nil, k, keystring.AppendTypeBits(nil, v), 1)
			if err != nil || len(rest) != 0 || got[0].Text() != v.Text() && bson.Compare(got[0], v) != 0 {
				t.Fatalf("%s came back as %v, %v", v.Text(), got, err)
			}
		}
	})
}

// checkHostile reads k as a key: what Decode makes of it must be valid, and Skip must agree on where it ends.
func checkHostile(t *testing.T, k, bits []byte) {
	vs, rest, err := keystring.Decode(nil, k, bits, 1)
	n, skipErr := keystring.Skip(k)
	if err != nil {
		return
	}
	if skipErr != nil || n != len(k)-len(rest) {
		t.Fatalf("Decode ends %x after %d, Skip after %d, %v", k, len(k)-len(rest), n, skipErr)
	}
	doc := bson.Build().Value("", vs[0]).Doc()
	if err := bson.Validate(doc, bson.MaxDepth+2); err != nil {
		t.Fatalf("%x became %x: %v", k, doc, err)
	}
}

func BenchmarkAppend(b *testing.B) {
	for _, v := range []bson.Value{bson.Int32(12345), bson.Int64(1<<53 + 1), bson.Double(19.99), decimal("19.99"), decimal("1E+300"), bson.String("a string of middling length"), bson.ObjectID([12]byte{}), bson.Date(1700000000000), bson.MustParse(`{a:1,b:"x",c:[1,2,3]}`)} {
		b.Run(fmt.Sprint(v.Type, " ", v.Text()), func(b *testing.B) {
			var buf []byte
			b.ReportAllocs()
			for b.Loop() {
				buf = keystring.Append(buf[:0], v, false)
			}
			b.ReportMetric(float64(len(buf)), "bytes/key")
		})
	}
}
