package keystring

import "github.com/ebbdb/ebb/internal/bson"

// Scans have bounds of the form start ≤ key < end. With a and b the encodings of two values in the direction of their
// field, and z = Successor:
//
//	from a, inclusive: start = a         exclusive: start = z(a)
//	up to b, inclusive: end = z(b)       exclusive: end = b
//
// because a value's encoding is a prefix of the keys that begin with the value and of no others.

// Successor changes key, in place, to the smallest one above all that begin with it, and returns it. It is nil, no bound
// at all, when there is none.
func Successor(key []byte) []byte {
	for n := len(key); n > 0; n-- {
		if key[n-1] != 0xFF {
			key[n-1]++
			return key[:n]
		}
	}
	return nil
}

// AppendTypeLow appends the lowest key of a field of the given direction that a value of t's class of types can have:
// all numbers, strings with symbols, both booleans. With AppendTypeHigh it bounds the class in byte order, whatever the
// direction.
func AppendTypeLow(dst []byte, t bson.Type, desc bool) []byte {
	low, high := classTags(t)
	if desc {
		return append(dst, (high-1)^0xFF)
	}
	return append(dst, low)
}

// AppendTypeHigh appends the lowest key above all of t's class of types.
func AppendTypeHigh(dst []byte, t bson.Type, desc bool) []byte {
	low, high := classTags(t)
	if desc {
		return append(dst, (low-1)^0xFF)
	}
	return append(dst, high)
}
