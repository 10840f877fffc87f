package resumetoken

import (
	"bytes"
	"encoding/binary"

	"github.com/ebbdb/ebb/internal/keystring"
	"github.com/ebbdb/ebb/internal/mongoerr"
)

// reader takes a key apart, which a client has sent: it may be anything.
type reader struct{ rest []byte }

// more says whether another value follows.
func (r *reader) more() bool { return len(r.rest) > 0 && r.rest[0] != tagEnd }

// take is the next byte, of which there is one.
func (r *reader) take() byte {
	b := r.rest[0]
	r.rest = r.rest[1:]
	return b
}

func (r *reader) bytes(n int) ([]byte, error) {
	if n < 0 || n > len(r.rest) {
		return nil, mongoerr.New(50810, "unexpected end of a resume token: %d bytes are missing", n-len(r.rest))
	}
	b := r.rest[:n]
	r.rest = r.rest[n:]
	return b, nil
}

func (r *reader) timestamp() (uint64, error) {
	if r.take() != tagTimestamp {
		return 0, mongoerr.New(mongoerr.FailedToParse, "a resume token does not begin with a timestamp")
	}
	b, err := r.bytes(8)
	if err != nil {
		return 0, err
	}
	return binary.BigEndian.Uint64(b), nil
}

// int reads an integer of 32 bits; the codes and texts are of the errors when there is none and when it is something else.
func (r *reader) int(absent mongoerr.Code, absentText string, wrong mongoerr.Code, wrongText string) (int64, error) {
	if !r.more() {
		return 0, mongoerr.New(absent, "%s", absentText)
	}
	tag := r.take()
	const widest = 5 // bytes that twice a number of 32 bits takes
	size := int(tag) - tagInt + 1
	if tag <= tagIntNeg && tag > tagIntNeg-widest {
		size = tagIntNeg - int(tag) + 1
	}
	switch {
	case tag == tagZero:
		return 0, nil
	case size < 1 || size > widest:
		return 0, mongoerr.New(wrong, "%s", wrongText)
	}
	b, err := r.bytes(size)
	if err != nil {
		return 0, err
	}
	twice := uint64(0)
	for _, c := range b {
		if tag <= tagIntNeg {
			c = ^c
		}
		twice = twice<<8 | uint64(c)
	}
	n := int64(twice >> 1)
	if tag <= tagIntNeg {
		n = -n
	}
	if twice&1 != 0 || int64(int32(n)) != n {
		return 0, mongoerr.New(wrong, "%s", wrongText)
	}
	return n, nil
}

func (r *reader) uuid() (uuid [uuidBytes]byte, ok bool) {
	head := []byte{tagBinary, uuidBytes, subtypeUUID}
	if len(r.rest) < len(head)+uuidBytes || !bytes.HasPrefix(r.rest, head) {
		return uuid, false
	}
	copy(uuid[:], r.rest[len(head):])
	r.rest = r.rest[len(head)+uuidBytes:]
	return uuid, true
}

// skip passes over a value that nests no deeper than depth.
func (r *reader) skip(depth int) error {
	if depth == 0 {
		return mongoerr.New(mongoerr.Overflow, "a resume token nests too deep")
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
			_, err = r.bytes(size + objectID)
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
		return mongoerr.New(50831, "a resume token has a value of an unknown type: %d", tag)
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
		return mongoerr.New(50810, "a resume token has a number that is none")
	}
	r.rest = r.rest[n:]
	return nil
}

func (r *reader) cstring() error {
	i := bytes.IndexByte(r.rest, 0)
	if i < 0 {
		return noTerminator()
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

func noTerminator() error {
	return mongoerr.New(50816, "Failed to find null terminator in string.")
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
	_, err = r.bytes(size + 1)
	return err
}

// elements passes over those of an object or an array.
func (r *reader) elements(depth int, named bool) error {
	for {
		if len(r.rest) == 0 {
			return noTerminator()
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
