package exec

import (
	"encoding/binary"
	"math"

	"github.com/ebbdb/ebb/internal/bson"
)

// prefix is a number that never contradicts bson.CompareWith: where two values' prefixes differ, the values compare the same
// way. Sorting by it first saves looking at the documents, which lie all over the memory. Strings that are collated have
// only their class in it.
func prefix(v bson.Value, collated bool) uint64 {
	class := uint64(v.Type.Class()+1) << 56
	switch v.Type {
	case bson.TypeInt32, bson.TypeInt64, bson.TypeDouble, bson.TypeDecimal:
		return class | floatPrefix(v.AsDouble())
	case bson.TypeString, bson.TypeSymbol:
		if !collated {
			return class | bytesPrefix(v.Data[4:len(v.Data)-1])
		}
	case bson.TypeObjectID:
		return class | bytesPrefix(v.Data)
	case bson.TypeDate:
		return class | (uint64(v.Millis())^1<<63)>>8
	case bson.TypeTimestamp:
		return class | binary.LittleEndian.Uint64(v.Data)>>8
	case bson.TypeBool:
		return class | uint64(v.Data[0])
	}
	return class
}

func floatPrefix(f float64) uint64 {
	switch {
	case math.IsNaN(f):
		return 0
	case f == 0:
		f = 0 // of either sign
	}
	bits := math.Float64bits(f)
	if bits>>63 != 0 {
		bits = ^bits
	} else {
		bits |= 1 << 63
	}
	return bits >> 8
}

func bytesPrefix(b []byte) uint64 {
	var eight [8]byte
	copy(eight[1:], b)
	return binary.BigEndian.Uint64(eight[:])
}
