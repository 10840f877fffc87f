package keystring

import (
	"encoding/binary"
	"math"

	"github.com/ebbdb/ebb/internal/bson"
)

// Type bits say of a key's values, in order and at any depth, what the key does not. A value for which the key leaves a
// choice is an open one: a number, a string or symbol, an undefined or missing. Each has a default:
//
//	a whole number   int if it fits one, else long if it fits one, else double
//	another number   double if it is one exactly, else a decimal without zeros at its end
//	text             string
//	undefined        undefined
//
// An entry stands for each open value that is not its default: an unsigned varint, above its lowest four bits the number
// of open values skipped since the last entry, in them the value's form; then what the form needs.
type form uint8

const (
	formDefault    form = iota
	formLong            // nothing
	formDouble          // nothing
	formDecimal         // varint: zeros at the end of the coefficient
	formRawDouble       // 8 bytes: the double
	formRawDecimal      // 16 bytes: the decimal (zeros, infinities, NaN and what is not canonical)
	formSymbol          // nothing
	formMissing         // nothing
)

const formBits = 4

// AppendTypeBits appends the type bits of a key of these values; nothing when all have their defaults.
func AppendTypeBits(dst []byte, values ...bson.Value) []byte {
	w := typeBitsWriter{dst: dst}
	for _, v := range values {
		w.value(v)
	}
	return w.dst
}

type typeBitsWriter struct {
	dst     []byte
	skipped uint64
}

func (w *typeBitsWriter) value(v bson.Value) {
	switch v.Type {
	case bson.TypeInt32, bson.TypeString, bson.TypeUndefined:
		w.skipped++
	case bson.TypeInt64:
		w.long(v.Int64())
	case bson.TypeDouble:
		w.double(v.Double())
	case bson.TypeDecimal:
		w.decimal(v.Decimal())
	case bson.TypeSymbol:
		w.entry(formSymbol)
	case bson.TypeMissing:
		w.entry(formMissing)
	case bson.TypeObject, bson.TypeArray:
		w.elements(v.Doc())
	case bson.TypeCodeWithScope:
		_, scope := v.CodeWithScope()
		w.elements(scope)
	}
}

func (w *typeBitsWriter) elements(d bson.Doc) {
	for it := d.Iter(); it.Next(); {
		w.value(it.Value())
	}
}

func (w *typeBitsWriter) entry(f form) {
	w.dst = binary.AppendUvarint(w.dst, w.skipped<<formBits|uint64(f))
	w.skipped = 0
}

func (w *typeBitsWriter) long(n int64) {
	if int64(int32(n)) == n {
		w.entry(formLong)
		return
	}
	w.skipped++
}

func (w *typeBitsWriter) double(f float64) {
	switch {
	case f == 0 && math.Signbit(f) || f != f && math.Float64bits(f) != plainNaN:
		w.entry(formRawDouble)
		w.dst = binary.BigEndian.AppendUint64(w.dst, math.Float64bits(f))
	case defaultForm(f) != bson.TypeDouble:
		w.entry(formDouble)
	default:
		w.skipped++
	}
}

func (w *typeBitsWriter) decimal(d bson.Decimal128) {
	number := !d.IsNaN() && d.Inf() == 0 && !d.IsZero()
	if !number || !canonical(d) {
		w.entry(formRawDecimal)
		w.dst = binary.BigEndian.AppendUint64(w.dst, d.High)
		w.dst = binary.BigEndian.AppendUint64(w.dst, d.Low)
		return
	}
	zeros := 0
	hi, lo, exp := d.Parts()
	if lo%2 == 0 {
		hi, lo, zeros = trimZeros(hi, lo)
	}
	if zeros == 0 && decimalByDefault(d.Negative(), hi, lo, exp) {
		w.skipped++
		return
	}
	w.entry(formDecimal)
	w.dst = binary.AppendUvarint(w.dst, uint64(zeros))
}

// plainNaN is the NaN that most programs make.
const plainNaN = 0x7FF8000000000000

// defaultForm is the type that the key of a double is read as.
func defaultForm(f float64) bson.Type {
	switch {
	case f != math.Trunc(f) || f >= 1<<63 || f < -(1<<63): // infinities and NaN too
		return bson.TypeDouble
	case f >= math.MinInt32 && f <= math.MaxInt32:
		return bson.TypeInt32
	default:
		return bson.TypeInt64
	}
}

func canonical(d bson.Decimal128) bool {
	hi, lo, exp := d.Parts()
	return bson.DecimalFromParts(d.Negative(), hi, lo, exp) == d
}

// decimalByDefault says whether the key of a decimal is read as a decimal: it is no long and no double.
func decimalByDefault(negative bool, hi, lo uint64, exp int) bool {
	if n, ok := smallUint(hi, lo, exp); ok && (n <= math.MaxInt64 || negative && n == signBit) {
		return false
	}
	var d digits
	d.setUint128(hi, lo, exp)
	_, exact := d.truncate(hi, lo, exp)
	return !exact
}

// typeBitsReader gives the forms of open values one after the other.
type typeBitsReader struct {
	rest  []byte
	skip  uint64
	form  form // of the open value after skip others
	ahead bool
}

func (r *typeBitsReader) next() (form, error) {
	if !r.ahead {
		if len(r.rest) == 0 {
			return formDefault, nil
		}
		u, n := binary.Uvarint(r.rest)
		if n <= 0 {
			return formDefault, errTypeBits
		}
		r.rest, r.skip, r.form, r.ahead = r.rest[n:], u>>formBits, form(u&(1<<formBits-1)), true
	}
	if r.skip > 0 {
		r.skip--
		return formDefault, nil
	}
	r.ahead = false
	return r.form, nil
}

func (r *typeBitsReader) bytes(n int) ([]byte, error) {
	if len(r.rest) < n {
		return nil, errTypeBits
	}
	b := r.rest[:n]
	r.rest = r.rest[n:]
	return b, nil
}

func (r *typeBitsReader) varint() (uint64, error) {
	u, n := binary.Uvarint(r.rest)
	if n <= 0 {
		return 0, errTypeBits
	}
	r.rest = r.rest[n:]
	return u, nil
}
