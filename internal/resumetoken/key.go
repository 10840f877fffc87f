package resumetoken

import (
	"encoding/binary"
	"math"
	"math/bits"

	"github.com/ebbdb/ebb/internal/bson"
	"github.com/ebbdb/ebb/internal/keystring"
)

// A key is values one behind the other in MongoDB's KeyString, version 1, ascending, and tagEnd. Each begins with a tag that orders
// the types; an integer's tag says how many bytes follow. Numbers that are no integers of 64 bits stand behind MongoDB's tag for
// their size in the form of package keystring: they sort as they should, and nobody but this package reads them.
const (
	tagLess      = 0x01 // behind a value: less than all that go on
	tagEnd       = 0x04
	tagMinKey    = 0x0A
	tagUndefined = 0x0F
	tagNullish   = 0x14
	tagNaN       = 0x1E // and the lowest of all numbers
	tagLargeNeg  = 0x1F
	tagIntNeg    = 0x27 // of one byte; one less for each byte more
	tagSmallNeg  = 0x28
	tagZero      = 0x29
	tagSmall     = 0x2A
	tagInt       = 0x2B // of one byte; one more for each byte more
	tagLarge     = 0x33
	tagString    = 0x3C
	tagObject    = 0x46
	tagArray     = 0x50
	tagBinary    = 0x5A
	tagObjectID  = 0x64
	tagFalse     = 0x6E
	tagTrue      = 0x6F
	tagDate      = 0x78
	tagTimestamp = 0x82
	tagRegex     = 0x8C
	tagDBPointer = 0x96
	tagCode      = 0xA0
	tagCodeScope = 0xAA
	tagMaxKey    = 0xF0
	tagGreater   = 0xFE // behind a value: greater than all that go on
)

const (
	subtypeUUID = 4
	uuidBytes   = 16
	objectID    = 12
	// longLength says that the length of a binary takes four more bytes.
	longLength = 0xFF
	// escape follows a 00 that is part of a string.
	escape = 0xFF
	// maxDepth bounds how deep the identifier of an event nests: a document and what is around its _id.
	maxDepth = bson.MaxDepth + 2
	signBit  = 1 << 63
)

func appendTimestamp(dst []byte, t uint64) []byte {
	return binary.BigEndian.AppendUint64(append(dst, tagTimestamp), t)
}

func appendBool(dst []byte, b bool) []byte {
	if b {
		return append(dst, tagTrue)
	}
	return append(dst, tagFalse)
}

func appendBinary(dst []byte, subtype byte, data []byte) []byte {
	if len(data) < longLength {
		dst = append(dst, tagBinary, byte(len(data)))
	} else {
		dst = binary.BigEndian.AppendUint32(append(dst, tagBinary, longLength), uint32(len(data)))
	}
	return append(append(dst, subtype), data...)
}

// appendInt appends an integer: its size in bytes is in the tag, and its lowest bit says that no fraction follows.
func appendInt(dst []byte, n int64) []byte {
	switch n {
	case 0:
		return append(dst, tagZero)
	case math.MinInt64: // twice its size takes more than 64 bits
		return appendLoose(append(dst, tagLargeNeg), bson.Int64(n))
	}
	return appendMagnitude(dst, n < 0, uint64(max(n, -n))<<1)
}

func appendMagnitude(dst []byte, negative bool, twice uint64) []byte {
	size := (bits.Len64(twice) + 7) / 8
	tag := byte(tagInt + size - 1)
	if negative {
		tag, twice = byte(tagIntNeg-(size-1)), ^twice
	}
	dst = append(dst, tag)
	for i := size - 1; i >= 0; i-- {
		dst = append(dst, byte(twice>>(8*i)))
	}
	return dst
}

// appendLoose appends a number behind its tag in the form of package keystring.
func appendLoose(dst []byte, v bson.Value) []byte { return keystring.Append(dst, v, false) }

func appendNumber(dst []byte, v bson.Value) []byte {
	switch v.Type {
	case bson.TypeInt32:
		return appendInt(dst, int64(v.Int32()))
	case bson.TypeInt64:
		return appendInt(dst, v.Int64())
	}
	f := v.AsDouble()
	if v.Type == bson.TypeDecimal && v.Decimal().IsNaN() {
		f = math.NaN()
	}
	whole := math.Trunc(f)
	switch {
	case f != f:
		return append(dst, tagNaN)
	case f >= signBit:
		return appendLoose(append(dst, tagLarge), v)
	case f <= -signBit:
		return appendLoose(append(dst, tagLargeNeg), v)
	case bson.Compare(v, bson.Int64(int64(whole))) == 0:
		return appendInt(dst, int64(whole))
	}
	// What a decimal is beyond a double's digits may round to the next integer: the integer part is the one below.
	if n := int64(whole); f > 0 && bson.Compare(v, bson.Int64(n)) < 0 {
		whole--
	} else if f < 0 && bson.Compare(v, bson.Int64(n)) > 0 {
		whole++
	}
	switch {
	case whole != 0:
		return appendLoose(appendMagnitude(dst, f < 0, uint64(math.Abs(whole))<<1|1), v)
	case bson.Compare(v, bson.Int32(0)) < 0:
		return appendLoose(append(dst, tagSmallNeg), v)
	}
	return appendLoose(append(dst, tagSmall), v)
}

func appendString(dst []byte, s string) []byte {
	for i := range len(s) {
		if dst = append(dst, s[i]); s[i] == 0 {
			dst = append(dst, escape)
		}
	}
	return append(dst, 0)
}

// typeTag is the tag that says before an element's name what class of types it is of.
func typeTag(t bson.Type) byte {
	switch t {
	case bson.TypeMinKey:
		return tagMinKey
	case bson.TypeNull:
		return tagNullish
	case bson.TypeDouble, bson.TypeInt32, bson.TypeInt64, bson.TypeDecimal:
		return tagNaN
	case bson.TypeString, bson.TypeSymbol:
		return tagString
	case bson.TypeObject:
		return tagObject
	case bson.TypeArray:
		return tagArray
	case bson.TypeBinary:
		return tagBinary
	case bson.TypeObjectID:
		return tagObjectID
	case bson.TypeBool:
		return tagFalse
	case bson.TypeDate:
		return tagDate
	case bson.TypeTimestamp:
		return tagTimestamp
	case bson.TypeRegex:
		return tagRegex
	case bson.TypeDBPointer:
		return tagDBPointer
	case bson.TypeCode:
		return tagCode
	case bson.TypeCodeWithScope:
		return tagCodeScope
	case bson.TypeMaxKey:
		return tagMaxKey
	default: // undefined, missing
		return tagUndefined
	}
}

func appendValue(dst []byte, v bson.Value) []byte {
	switch v.Type {
	case bson.TypeInt32, bson.TypeInt64, bson.TypeDouble, bson.TypeDecimal:
		return appendNumber(dst, v)
	case bson.TypeString, bson.TypeSymbol, bson.TypeCode:
		return appendString(append(dst, typeTag(v.Type)), v.Str())
	case bson.TypeObject:
		return appendObject(append(dst, tagObject), v.Doc())
	case bson.TypeArray:
		dst = append(dst, tagArray)
		for it := v.Doc().Iter(); it.Next(); {
			dst = appendValue(dst, it.Value())
		}
		return append(dst, 0)
	case bson.TypeBinary:
		subtype, data := v.Binary()
		return appendBinary(dst, subtype, data)
	case bson.TypeObjectID:
		return append(append(dst, tagObjectID), v.Data...)
	case bson.TypeBool:
		return appendBool(dst, v.Bool())
	case bson.TypeDate:
		return binary.BigEndian.AppendUint64(append(dst, tagDate), uint64(v.Millis())^signBit)
	case bson.TypeTimestamp:
		seconds, counter := v.Timestamp()
		return appendTimestamp(dst, uint64(seconds)<<32|uint64(counter))
	case bson.TypeRegex:
		return append(append(dst, tagRegex), v.Data...)
	case bson.TypeDBPointer:
		ns, id := v.DBPointer()
		return append(append(binary.BigEndian.AppendUint32(append(dst, tagDBPointer), uint32(len(ns))), ns...), id[:]...)
	case bson.TypeCodeWithScope:
		code, scope := v.CodeWithScope()
		return appendObject(appendString(append(dst, tagCodeScope), code), scope)
	default: // MinKey, MaxKey, null, undefined, missing
		return append(dst, typeTag(v.Type))
	}
}

// appendName appends what stands before the value of an element.
func appendName(dst []byte, t bson.Type, name string) []byte {
	return append(append(append(dst, typeTag(t)), name...), 0)
}

func appendObject(dst []byte, d bson.Doc) []byte {
	for it := d.Iter(); it.Next(); {
		dst = appendValue(appendName(dst, it.Value().Type, it.Key()), it.Value())
	}
	return append(dst, 0)
}
