package bson

import (
	"encoding/binary"
	"math"

	"github.com/cockroachdb/apd/v3"
)

// StringKeyer gives strings that a collation finds equal the same key.
type StringKeyer interface {
	AppendKey(dst []byte, s string) []byte
}

// AppendCanonical appends bytes that are the same for two values exactly when Compare finds them equal, so that they can be
// hashed: numbers of all types by what they are worth, missing like undefined, symbols like strings. Strings go through
// keys when it is not nil. The bytes delimit themselves; their order means nothing.
func AppendCanonical(dst []byte, v Value, keys StringKeyer) []byte {
	dst = append(dst, byte(v.Type.Class()))
	switch v.Type {
	case TypeInt32:
		return appendCanonicalInt(dst, int64(v.Int32()))
	case TypeInt64:
		return appendCanonicalInt(dst, v.Int64())
	case TypeDouble:
		return appendCanonicalDouble(dst, v.Double())
	case TypeDecimal:
		return appendCanonicalDecimal(dst, v)
	case TypeString, TypeSymbol:
		if keys != nil {
			at := len(dst)
			dst = keys.AppendKey(append(dst, 0, 0, 0, 0), v.Str())
			binary.LittleEndian.PutUint32(dst[at:], uint32(len(dst)-at-4))
			return dst
		}
	case TypeObject:
		return appendCanonicalDoc(dst, v.Doc(), true, keys)
	case TypeArray:
		return appendCanonicalDoc(dst, v.Doc(), false, keys)
	case TypeCodeWithScope:
		code, scope := v.CodeWithScope()
		return appendCanonicalDoc(appendString(dst, code), scope, true, keys)
	}
	return append(dst, v.Data...)
}

func appendCanonicalDoc(dst []byte, d Doc, names bool, keys StringKeyer) []byte {
	for it := d.Iter(); it.Next(); {
		dst = append(dst, 1)
		if names {
			dst = append(append(dst, it.Key()...), 0)
		}
		dst = AppendCanonical(dst, it.Value(), keys)
	}
	return append(dst, 0)
}

// The kinds of numbers in canonical bytes: each number has exactly one.
const (
	canonicalInt     = 'i' // fits a long
	canonicalDouble  = 'd' // else is a double, NaN and the infinities too
	canonicalDecimal = 'x' // else
)

func appendCanonicalInt(dst []byte, n int64) []byte {
	return binary.LittleEndian.AppendUint64(append(dst, canonicalInt), uint64(n))
}

func appendCanonicalDouble(dst []byte, f float64) []byte {
	if f >= -(1<<63) && f < 1<<63 && f == math.Trunc(f) {
		return appendCanonicalInt(dst, int64(f))
	}
	if math.IsNaN(f) {
		f = math.NaN()
	}
	return binary.LittleEndian.AppendUint64(append(dst, canonicalDouble), math.Float64bits(f))
}

func appendCanonicalDecimal(dst []byte, v Value) []byte {
	if n, exact := v.AsInt64(); exact {
		return appendCanonicalInt(dst, n)
	}
	f := v.Decimal().Float64()
	if math.IsNaN(f) || (!math.IsInf(f, 0) || v.Decimal().Inf() != 0) && CompareNumbers(Double(f), v) == 0 {
		return appendCanonicalDouble(dst, f)
	}
	var r apd.Decimal
	r.Reduce(v.Decimal().APD())
	return append(append(append(dst, canonicalDecimal), r.String()...), 0)
}
