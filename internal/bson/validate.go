package bson

import (
	"encoding/binary"
	"errors"
	"fmt"
)

const (
	// MaxDocSize is the largest document a user may store: 16 MiB.
	MaxDocSize = 16 * 1024 * 1024
	// MaxInternalSize is the largest document that may pass inside the server (a stored one plus a command's frame).
	MaxInternalSize = MaxDocSize + 16*1024
	// MaxDepth is the deepest nesting that a stored or received document may have.
	MaxDepth = 200
)

var (
	// ErrInvalid is the root of every error that Validate returns but ErrTooDeep.
	ErrInvalid = errors.New("invalid BSON")
	// ErrTooDeep says that documents nest deeper than the limit given.
	ErrTooDeep = errors.New("BSON nests too deep")
)

// Validate checks that b is exactly one well-formed document whose documents and arrays nest at most depth deep.
// After it, every accessor is safe on b and all below it.
func Validate(b []byte, depth int) error {
	if len(b) < 5 {
		return fmt.Errorf("%w: %d bytes are no document", ErrInvalid, len(b))
	}
	if n := int(int32(binary.LittleEndian.Uint32(b))); n != len(b) {
		return fmt.Errorf("%w: length %d in a document of %d bytes", ErrInvalid, n, len(b))
	}
	return validate(b, depth)
}

// ReadValue is the value of type t that b begins with, checked as by Validate, and how many bytes of b it is.
func ReadValue(t Type, b []byte, depth int) (Value, int, error) {
	n := valueSize(t, b)
	if n < 0 {
		return Missing, 0, fmt.Errorf("%w: bad value of type 0x%02x", ErrInvalid, byte(t))
	}
	if err := validateValue(t, b[:n], depth); err != nil {
		return Missing, 0, err
	}
	return Value{t, b[:n:n]}, n, nil
}

func validate(b []byte, depth int) error {
	if depth <= 0 {
		return ErrTooDeep
	}
	if b[len(b)-1] != 0 {
		return fmt.Errorf("%w: document not terminated", ErrInvalid)
	}
	rest := b[4 : len(b)-1]
	for len(rest) > 0 {
		t := Type(rest[0])
		k := cstring(rest[1:])
		if k < 0 {
			return fmt.Errorf("%w: element name not terminated", ErrInvalid)
		}
		n := valueSize(t, rest[k+2:])
		if n < 0 {
			return fmt.Errorf("%w: bad value of type 0x%02x in element %q", ErrInvalid, byte(t), clip(rest[1:1+k]))
		}
		if err := validateValue(t, rest[k+2:k+2+n], depth); err != nil {
			return err
		}
		rest = rest[k+2+n:]
	}
	return nil
}

func validateValue(t Type, v []byte, depth int) error {
	switch t {
	case TypeObject, TypeArray:
		return validate(v, depth-1)
	case TypeString, TypeCode, TypeSymbol:
		if v[len(v)-1] != 0 {
			return fmt.Errorf("%w: string not terminated", ErrInvalid)
		}
	case TypeBool:
		if v[0] > 1 {
			return fmt.Errorf("%w: boolean of value %d", ErrInvalid, v[0])
		}
	case TypeBinary:
		if v[4] == 2 && (len(v) < 9 || int(binary.LittleEndian.Uint32(v[5:])) != len(v)-9) {
			return fmt.Errorf("%w: bad length in binary of subtype 2", ErrInvalid)
		}
	case TypeDBPointer:
		if v[len(v)-13] != 0 {
			return fmt.Errorf("%w: string not terminated", ErrInvalid)
		}
	case TypeCodeWithScope:
		return validateCodeWithScope(v, depth)
	}
	return nil
}

func validateCodeWithScope(v []byte, depth int) error {
	bad := fmt.Errorf("%w: bad code with scope", ErrInvalid)
	if len(v) < 4+5+5 {
		return bad
	}
	n := int(binary.LittleEndian.Uint32(v[4:]))
	if n < 1 || n > len(v)-8-5 || v[8+n-1] != 0 {
		return bad
	}
	scope := v[8+n:]
	if int(binary.LittleEndian.Uint32(scope)) != len(scope) {
		return bad
	}
	return validate(scope, depth-1)
}

func clip(b []byte) []byte {
	if len(b) > 64 {
		return b[:64]
	}
	return b
}
