package resumetoken

import (
	"bytes"
	"encoding/binary"

	"github.com/ebbdb/ebb/internal/keystring"
	"github.com/ebbdb/ebb/internal/mongoerr"
)

// reader takes a key apart, which a client has sent: it may be anything. It refuses what MongoDB refuses, and as MongoDB does: before
// anybody asks what the values are for.
type reader struct{ rest []byte }

// mostValues is how many values of a key count: those of a token, and one more that is too many.
const mostValues = 9

// split is the values of a key, each with its tag. It ends at tagEnd, or where the key does.
func split(key []byte) (values [][]byte, err error) {
	r := reader{key}
	for len(r.rest) > 0 {
		if tag := r.rest[0]; tag == tagLess || tag == tagGreater { // part of the value before it
			r.take()
			if len(r.rest) == 0 {
				return nil, pastEnd(1, 0)
			}
		}
		if r.rest[0] == tagEnd {
			break
		}
		begin := r.rest
		if err := r.skip(maxDepth); err != nil {
			return nil, err
		}
		if n := len(begin) - len(r.rest); len(values) < mostValues {
			values = append(values, begin[:n:n])
		}
	}
	return values, nil
}

// take is the next byte, of which there is one.
func (r *reader) take() byte {
	b := r.rest[0]
	r.rest = r.rest[1:]
	return b
}

func pastEnd(n, left int) error {
	return mongoerr.New(mongoerr.Overflow, "Invalid advance (%d) past end of buffer[%d] at offset: 0", n, left)
}

func (r *reader) bytes(n int) ([]byte, error) {
	if n > len(r.rest) {
		return nil, pastEnd(n, len(r.rest))
	}
	b := r.rest[:n]
	r.rest = r.rest[n:]
	return b, nil
}

// timeOf reads a value as a timestamp: what is none is the lowest, as in MongoDB, and a date is one as its bytes are.
func timeOf(value []byte) uint64 {
	switch value[0] {
	case tagTimestamp:
		return binary.BigEndian.Uint64(value[1:])
	case tagDate:
		return binary.BigEndian.Uint64(value[1:]) ^ signBit
	}
	return 0
}

// intOf reads an integer of 32 bits; it is not ok if the value is something else.
func intOf(value []byte) (n int64, ok bool) {
	const widest = 5 // bytes that twice a number of 32 bits takes
	tag, digits := value[0], value[1:]
	negative := tag <= tagIntNeg && tag > tagIntNeg-widest
	switch {
	case tag == tagZero:
		return 0, true
	case !negative && (tag < tagInt || tag >= tagInt+widest):
		return 0, false
	}
	twice := uint64(0)
	for _, c := range digits {
		if negative {
			c = ^c
		}
		twice = twice<<8 | uint64(c)
	}
	n = int64(twice >> 1)
	if negative {
		n = -n
	}
	return n, twice&1 == 0 && int64(int32(n)) == n
}

func uuidOf(value []byte) (uuid [uuidBytes]byte, ok bool) {
	rest, ok := bytes.CutPrefix(value, []byte{tagBinary, uuidBytes, subtypeUUID})
	return uuid, ok && copy(uuid[:], rest) == uuidBytes
}

// skip passes over a value that nests no deeper than depth.
func (r *reader) skip(depth int) error {
	if depth == 0 {
		return mongoerr.New(mongoerr.Overflow, "KeyString encoding exceeded maximum allowable BSON nesting depth")
	}
	if len(r.rest) == 0 {
		_, err := r.bytes(1)
		return err
	}
	switch tag := r.take(); tag {
	case tagMinKey, tagMaxKey, tagUndefined, tagNullish, tagFalse, tagTrue, tagNaN, tagZero:
		return nil
	case tagString, tagCode:
		return r.text()
	case tagObject:
		return r.elements(depth, true)
	case tagArray:
		return r.elements(depth, false)
	case tagCodeScope:
		if err := r.text(); err != nil {
			return err
		}
		return r.elements(depth, true)
	case tagBinary:
		return r.binary()
	case tagObjectID:
		_, err := r.bytes(objectID)
		return err
	case tagDate, tagTimestamp:
		_, err := r.bytes(8)
		return err
	case tagRegex:
		if err := r.cstring(); err != nil {
			return err
		}
		return r.cstring()
	case tagDBPointer:
		size, err := r.length()
		if err == nil {
			_, err = r.bytes(size)
		}
		if err == nil {
			_, err = r.bytes(objectID)
		}
		return err
	default:
		return r.number(tag)
	}
}

func (r *reader) number(tag byte) error {
	size := 0
	switch {
	case tag == tagLarge, tag == tagLargeNeg, tag == tagSmall, tag == tagSmallNeg:
		return r.loose()
	case tag >= tagInt && tag < tagLarge:
		size = int(tag) - tagInt + 1
	case tag > tagLargeNeg && tag <= tagIntNeg:
		size = tagIntNeg - int(tag) + 1
	default:
		return mongoerr.New(50811, "Unknown type: %d", tag)
	}
	b, err := r.bytes(size)
	if err != nil {
		return err
	}
	if b[size-1]&1 == 1 == (tag >= tagInt) { // the lowest bit of a negative number is inverted
		return r.loose()
	}
	return nil
}

// loose passes over a number in the form of package keystring.
func (r *reader) loose() error {
	n, err := keystring.Skip(r.rest)
	if err != nil {
		return mongoerr.New(50810, "Expected type Decimal.")
	}
	r.rest = r.rest[n:]
	return nil
}

func (r *reader) cstring() error {
	i := bytes.IndexByte(r.rest, 0)
	if i < 0 {
		return mongoerr.New(50816, "Failed to find null terminator in string.")
	}
	r.rest = r.rest[i+1:]
	return nil
}

// text passes over a string, in which 00 is escaped.
func (r *reader) text() error {
	for {
		if err := r.cstring(); err != nil {
			return err
		}
		if len(r.rest) == 0 || r.rest[0] != escape {
			return nil
		}
		r.take()
	}
}

func (r *reader) length() (int, error) {
	b, err := r.bytes(4)
	if err != nil {
		return 0, err
	}
	return int(binary.BigEndian.Uint32(b)), nil
}

func (r *reader) binary() error {
	b, err := r.bytes(1)
	if err != nil {
		return err
	}
	size := int(b[0])
	if size == longLength {
		if size, err = r.length(); err != nil {
			return err
		}
	}
	if _, err := r.bytes(1); err != nil { // the subtype
		return err
	}
	_, err = r.bytes(size)
	return err
}

// elements passes over those of an object or an array.
func (r *reader) elements(depth int, named bool) error {
	for {
		if len(r.rest) == 0 {
			return pastEnd(1, 0)
		}
		if r.rest[0] == 0 {
			r.take()
			return nil
		}
		if named {
			r.take() // the class of its type
			if err := r.cstring(); err != nil {
				return err
			}
		}
		if err := r.skip(depth - 1); err != nil {
			return err
		}
	}
}
