// Package keystring turns BSON values into bytes that bytes.Compare orders as bson.Compare orders the values, so that an
// ordered store can hold an index. It knows nothing of documents' paths, indexes or record ids.
//
// # Form
//
// A key is its values' encodings, one after the other. Each begins with a tag that orders the classes of types and tells
// where the value ends, so that whatever follows the key does not matter. A descending value has all its bits inverted;
// tags are below 0x80, so that its first byte tells the direction.
//
//	number   by sign; zero and NaN are tags alone, for the rest see number.go
//	string   the bytes, 00 as 00 FF, and 00 01 at the end
//	object   for each element: the lowest tag of its class, name, 00, value; then 00
//	array    for each element: value; then 00
//	binData  length, subtype, bytes; dbPointer: length, bytes
//	date     8 bytes, timestamp 8, objectId 12, bool a tag alone
//	regex    pattern, 00, options, 00; code: as string; code with scope: as string, then as object
//
// # Type bits
//
// Values that compare equal have one encoding (1, 1.0 and NumberDecimal("1.00")). What it takes to have the very value
// back is kept beside the key, see typebits.go; it is empty in the usual case.
//
// The form is on disk: changing it takes a new version of the store's format.
package keystring

import (
	"bytes"
	"encoding/binary"
	"fmt"

	"github.com/ebbdb/ebb/internal/bson"
)

// Tags, in the order of MongoDB's classes of types. 0x00 ends objects and arrays and is below all of them.
const (
	tagEnd           = 0x00
	tagMinKey        = 0x08
	tagUndefined     = 0x0C
	tagNull          = 0x10
	tagNaN           = 0x14
	tagNegative      = 0x15
	tagZero          = 0x16
	tagPositive      = 0x17
	tagString        = 0x1C
	tagObject        = 0x20
	tagArray         = 0x24
	tagBinary        = 0x28
	tagObjectID      = 0x2C
	tagFalse         = 0x30
	tagTrue          = 0x31
	tagDate          = 0x34
	tagTimestamp     = 0x38
	tagRegex         = 0x3C
	tagDBPointer     = 0x40
	tagCode          = 0x44
	tagCodeWithScope = 0x48
	tagMaxKey        = 0x70

	inverted = 0x80 // the bit that tells a descending value's first byte
)

// Inside a string 00 is escaped, and the end is marked by what no escape can look like.
const (
	stringEscape = 0xFF
	stringEnd    = 0x01
)

// signBit makes signed integers order as unsigned ones.
const signBit = 1 << 63

// A binary's length takes one byte, or this one and four more.
const longLength = 0xFF

// Collator gives the bytes that order strings where an index has a collation. Values cannot be had back from such a key.
type Collator interface {
	AppendKey(dst []byte, s string) []byte
}

// Append appends v's encoding to dst; desc turns its order round. v must be valid BSON; a missing v counts as undefined.
func Append(dst []byte, v bson.Value, desc bool) []byte { return AppendCollated(dst, v, desc, nil) }

// AppendCollated is Append with strings and symbols (at any depth, but not field names) ordered by c, when not nil.
func AppendCollated(dst []byte, v bson.Value, desc bool, c Collator) []byte {
	start := len(dst)
	dst = appendValue(dst, v, c)
	if desc {
		invert(dst[start:])
	}
	return dst
}

// AppendDate appends the key of the date ms milliseconds after the epoch.
func AppendDate(dst []byte, ms int64, desc bool) []byte {
	start := len(dst)
	dst = binary.BigEndian.AppendUint64(append(dst, tagDate), uint64(ms)^signBit)
	if desc {
		invert(dst[start:])
	}
	return dst
}

// Date reads the date that key begins with; ok is false when it begins with something else.
func Date(key []byte) (ms int64, ok bool) {
	if len(key) < 9 {
		return 0, false
	}
	u := binary.BigEndian.Uint64(key[1:]) ^ signBit
	switch key[0] {
	case tagDate:
		return int64(u), true
	case tagDate ^ 0xFF:
		return int64(^u), true
	default:
		return 0, false
	}
}

// classTags are the first byte of the keys of a value of type t and the one after the last such byte: keys of t's class
// of types that are not inverted lie in [low, high).
func classTags(t bson.Type) (low, high byte) {
	switch t {
	case bson.TypeMinKey:
		return tagMinKey, tagMinKey + 1
	case bson.TypeMissing, bson.TypeUndefined:
		return tagUndefined, tagUndefined + 1
	case bson.TypeNull:
		return tagNull, tagNull + 1
	case bson.TypeDouble, bson.TypeInt32, bson.TypeInt64, bson.TypeDecimal:
		return tagNaN, tagPositive + 1
	case bson.TypeString, bson.TypeSymbol:
		return tagString, tagString + 1
	case bson.TypeObject:
		return tagObject, tagObject + 1
	case bson.TypeArray:
		return tagArray, tagArray + 1
	case bson.TypeBinary:
		return tagBinary, tagBinary + 1
	case bson.TypeObjectID:
		return tagObjectID, tagObjectID + 1
	case bson.TypeBool:
		return tagFalse, tagTrue + 1
	case bson.TypeDate:
		return tagDate, tagDate + 1
	case bson.TypeTimestamp:
		return tagTimestamp, tagTimestamp + 1
	case bson.TypeRegex:
		return tagRegex, tagRegex + 1
	case bson.TypeDBPointer:
		return tagDBPointer, tagDBPointer + 1
	case bson.TypeCode:
		return tagCode, tagCode + 1
	case bson.TypeCodeWithScope:
		return tagCodeWithScope, tagCodeWithScope + 1
	case bson.TypeMaxKey:
		return tagMaxKey, tagMaxKey + 1
	}
	panic(fmt.Sprintf("keystring: type 0x%02x", byte(t)))
}

func appendValue(dst []byte, v bson.Value, c Collator) []byte {
	switch v.Type {
	case bson.TypeInt32:
		return appendInt(dst, int64(v.Int32()))
	case bson.TypeInt64:
		return appendInt(dst, v.Int64())
	case bson.TypeDouble:
		return appendDouble(dst, v.Double())
	case bson.TypeDecimal:
		return appendDecimal(dst, v.Decimal())
	case bson.TypeString, bson.TypeSymbol:
		return appendText(append(dst, tagString), v.Str(), c)
	case bson.TypeObject:
		return appendObject(append(dst, tagObject), v.Doc(), c)
	case bson.TypeArray:
		return appendArray(append(dst, tagArray), v.Doc(), c)
	case bson.TypeBinary:
		return append(appendLength(append(dst, tagBinary), len(v.Data)-5), v.Data[4:]...)
	case bson.TypeObjectID:
		return append(append(dst, tagObjectID), v.Data...)
	case bson.TypeBool:
		if v.Bool() {
			return append(dst, tagTrue)
		}
		return append(dst, tagFalse)
	case bson.TypeDate:
		return AppendDate(dst, v.Millis(), false)
	case bson.TypeTimestamp:
		return binary.BigEndian.AppendUint64(append(dst, tagTimestamp), binary.LittleEndian.Uint64(v.Data))
	case bson.TypeRegex:
		return append(append(dst, tagRegex), v.Data...)
	case bson.TypeDBPointer:
		return append(appendLength(append(dst, tagDBPointer), len(v.Data)-4), v.Data[4:]...)
	case bson.TypeCode:
		return appendString(append(dst, tagCode), v.Str())
	case bson.TypeCodeWithScope:
		code, scope := v.CodeWithScope()
		return appendObject(appendString(append(dst, tagCodeWithScope), code), scope, c)
	default: // MinKey, MaxKey, null, undefined, missing
		low, _ := classTags(v.Type)
		return append(dst, low)
	}
}

func appendText(dst []byte, s string, c Collator) []byte {
	if c == nil {
		return appendString(dst, s)
	}
	start := len(dst)
	dst = c.AppendKey(dst, s)
	if bytes.IndexByte(dst[start:], 0) < 0 {
		return append(dst, 0, stringEnd)
	}
	return appendString(dst[:start], string(dst[start:]))
}

func appendString(dst []byte, s string) []byte {
	for i := range len(s) {
		if s[i] == 0 {
			return appendEscaped(dst, s, i)
		}
	}
	return append(append(dst, s...), 0, stringEnd)
}

func appendEscaped(dst []byte, s string, i int) []byte {
	dst = append(dst, s[:i]...)
	for ; i < len(s); i++ {
		dst = append(dst, s[i])
		if s[i] == 0 {
			dst = append(dst, stringEscape)
		}
	}
	return append(dst, 0, stringEnd)
}

func appendObject(dst []byte, d bson.Doc, c Collator) []byte {
	for it := d.Iter(); it.Next(); {
		low, _ := classTags(it.Value().Type)
		dst = append(dst, low)
		dst = append(dst, it.Key()...)
		dst = append(dst, 0)
		dst = appendValue(dst, it.Value(), c)
	}
	return append(dst, tagEnd)
}

func appendArray(dst []byte, d bson.Doc, c Collator) []byte {
	for it := d.Iter(); it.Next(); {
		dst = appendValue(dst, it.Value(), c)
	}
	return append(dst, tagEnd)
}

func appendLength(dst []byte, n int) []byte {
	if n < longLength {
		return append(dst, byte(n))
	}
	return binary.BigEndian.AppendUint32(append(dst, longLength), uint32(n))
}

func invert(b []byte) {
	for i := range b {
		b[i] ^= 0xFF
	}
}
