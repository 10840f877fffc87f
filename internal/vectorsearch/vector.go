package vectorsearch

import (
	"encoding/binary"
	"math"

	"github.com/ebbdb/ebb/internal/bson"
)

// Kind is what a vector is made of. Vectors of different kinds are not compared.
type Kind uint8

// The kinds, and how a binary vector (subtype 9) begins that is one.
const (
	Float32   Kind = 0x27
	Int8      Kind = 0x03
	PackedBit Kind = 0x10
)

const (
	// vectorSubtype is the subtype of binaries that are vectors. They begin with two bytes, the kind and how many bits of the last
	// byte are padding.
	vectorSubtype = 9
	vectorHeader  = 2
	// MaxDimensions is how many numbers a vector has at most.
	MaxDimensions = 8192
)

// Vector is one vector. Its memory is used again by Read.
type Vector struct {
	Kind   Kind
	floats []float32
	bytes  []byte  // of Int8 and PackedBit
	square float32 // of the length of floats, where it was measured
}

// Dimensions is how many numbers the vector has.
func (v *Vector) Dimensions() int {
	switch v.Kind {
	case Float32:
		return len(v.floats)
	case PackedBit:
		return 8 * len(v.bytes)
	}
	return len(v.bytes)
}

// isZero says whether the vector has no direction.
func (v *Vector) isZero() bool {
	for _, f := range v.floats {
		if f != 0 {
			return false
		}
	}
	for _, b := range v.bytes {
		if b != 0 {
			return false
		}
	}
	return true
}

// Read makes v what value says, an array of numbers or a binary vector. It says whether that is a vector of so many dimensions; others
// are not indexed.
func (v *Vector) Read(value bson.Value, dimensions int) bool {
	switch value.Type {
	case bson.TypeArray:
		return v.readNumbers(value.Doc(), dimensions)
	case bson.TypeBinary:
		return v.readBinary(value) == nil && v.Dimensions() == dimensions
	}
	return false
}

// readNumbers reads an array. One of doubles, as most are, is not looked at value by value.
func (v *Vector) readNumbers(array bson.Doc, dimensions int) bool {
	v.Kind, v.floats, v.bytes = Float32, v.floats[:0], nil
	if v.readDoubles(array, dimensions) {
		return true
	}
	v.floats = v.floats[:0]
	for it := array.Iter(); it.Next(); {
		f, ok := number(it.Value())
		if !ok || len(v.floats) == dimensions {
			return false
		}
		v.floats = append(v.floats, f)
	}
	return len(v.floats) == dimensions
}

// readDoubles reads an array that has nothing but finite doubles, under the keys that arrays have.
func (v *Vector) readDoubles(array bson.Doc, dimensions int) bool {
	const lengthBytes, doubleBytes = 4, 8
	rest, digits, next := array[lengthBytes:], 1, 10
	for i := range dimensions {
		if i == next {
			digits, next = digits+1, next*10
		}
		end := 1 + digits + 1 + doubleBytes
		if len(rest) <= end || bson.Type(rest[0]) != bson.TypeDouble || rest[1+digits] != 0 {
			return false
		}
		f := float32(math.Float64frombits(binary.LittleEndian.Uint64(rest[end-doubleBytes:])))
		if !isFinite(f) {
			return false
		}
		v.floats = append(v.floats, f)
		rest = rest[end:]
	}
	return len(rest) == 1
}

// number is a value as a component of a vector.
func number(v bson.Value) (float32, bool) {
	switch v.Type {
	case bson.TypeDouble, bson.TypeInt32, bson.TypeInt64:
		f := float32(v.AsDouble())
		return f, isFinite(f)
	}
	return 0, false
}

func isFinite(f float32) bool { return f-f == 0 }

// readBinary reads a binary vector.
func (v *Vector) readBinary(value bson.Value) error {
	subtype, data := value.Binary()
	if subtype != vectorSubtype {
		return wrong(`"queryVector" must be a binary of subtype %d, but is of %d`, vectorSubtype, subtype)
	}
	if len(data) < vectorHeader {
		return wrong(`"queryVector" is too short for a binary vector`)
	}
	kind, padding, data := Kind(data[0]), data[1], data[vectorHeader:]
	if padding != 0 {
		return wrong(`"queryVector" must be a binary vector without padding`)
	}
	v.Kind, v.floats, v.bytes = kind, v.floats[:0], nil
	switch kind {
	case Int8, PackedBit:
		v.bytes = data
		return nil
	case Float32:
		if len(data)%4 != 0 {
			return wrong(`"queryVector" has a part of a number at its end`)
		}
		for ; len(data) > 0; data = data[4:] {
			f := math.Float32frombits(binary.LittleEndian.Uint32(data))
			if !isFinite(f) {
				return wrong(`"queryVector" cannot contain values that are not finite`)
			}
			v.floats = append(v.floats, f)
		}
		return nil
	}
	return wrong(`"queryVector" is a binary vector of a type that is not known: %d`, uint8(kind))
}
