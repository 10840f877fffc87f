// Package column reads columns of values as MongoDB compresses them in the buckets of time series: binary data of subtype 7.
//
// A column is a sequence of parts, each behind a control byte. A literal is an element without a name. Blocks of Simple-8b (simple8b.go) are what the
// values behind it differ by, or by how much more or less than the one before they do (stream.go). Objects and arrays may be taken apart (interleaved.go):
// a reference that has all of their fields, and then the literals and blocks of each field, in the order in which the fields need them.
package column

import (
	"errors"
	"fmt"

	"github.com/ebbdb/ebb/internal/bson"
)

// Subtype is that of binary data that is a column.
const Subtype = 7

// ErrInvalid is the root of what Decode returns for what is no column.
var ErrInvalid = errors.New("invalid column")

// Limits are what a column may grow to; a few bytes may say that there are a great many values.
type Limits struct {
	Values int
	// Bytes is what values may take that are made anew, and as many steps may be taken to make them.
	Bytes int
}

// Control bytes.
const (
	end               = 0x00
	interleavedOld    = 0xf0 // arrays are not taken apart
	interleaved       = 0xf1
	interleavedArrays = 0xf2 // of arrays
)

// Decode is the values of a column. One that a measurement does not have is bson.Missing. They may lie in data.
func Decode(data []byte, l Limits) ([]bson.Value, error) {
	r := &reader{rest: data, limits: l}
	var s stream
	for {
		control, err := r.control()
		switch {
		case err != nil:
			return nil, err
		case control == end && len(r.rest) > 1:
			return nil, invalid("something follows its end")
		case control == end:
			return r.values, nil
		case isInterleaved(control):
			var last bson.Value
			if last, err = r.interleaved(control); err == nil {
				s = stream{last: last}
			}
		default:
			err = r.part(&s)
			for more := err == nil; more && err == nil; {
				var v bson.Value
				if v, more, err = s.next(); more && err == nil {
					err = r.add(v)
				}
			}
		}
		if err != nil {
			return nil, err
		}
	}
}

// reader is what of a column has not been read yet, and what has.
type reader struct {
	rest   []byte
	values []bson.Value
	limits Limits
	spent  int // of limits.Bytes
}

func invalid(format string, args ...any) error {
	return fmt.Errorf("%w: %s", ErrInvalid, fmt.Sprintf(format, args...))
}

func (r *reader) control() (byte, error) {
	if len(r.rest) == 0 {
		return 0, invalid("it has no end")
	}
	return r.rest[0], nil
}

func isInterleaved(control byte) bool {
	return control == interleavedOld || control == interleaved || control == interleavedArrays
}

func isLiteral(control byte) bool {
	return control&0xe0 == 0 || control == byte(bson.TypeMinKey) || control == byte(bson.TypeMaxKey)
}

func (r *reader) add(v bson.Value) error {
	if len(r.values) >= r.limits.Values {
		return invalid("it has more than %d values", r.limits.Values)
	}
	r.values = append(r.values, v)
	return r.spend(len(v.Data))
}

func (r *reader) spend(n int) error {
	if r.spent += n; r.spent > r.limits.Bytes {
		return invalid("its values take more than %d bytes", r.limits.Bytes)
	}
	return nil
}

// part reads a literal or blocks for a stream, which has given all that it had.
func (r *reader) part(s *stream) error {
	control := r.rest[0]
	if isLiteral(control) {
		v, n, err := r.literal(bson.Type(control))
		if err != nil {
			return err
		}
		r.rest = r.rest[n:]
		*s = begin(v)
		s.literal = true
		return nil
	}
	n := 1 + 8*int(control&0x0f+1)
	if n >= len(r.rest) {
		return invalid("blocks are cut off")
	}
	blocks := r.rest[1:n]
	r.rest = r.rest[n:]
	return s.goOn(control, blocks)
}

// literal is an element whose name is empty, and how long it is.
func (r *reader) literal(t bson.Type) (bson.Value, int, error) {
	if len(r.rest) < 2 || r.rest[1] != 0 {
		return bson.Missing, 0, invalid("a literal has a name")
	}
	v, n, err := bson.ReadValue(t, r.rest[2:], maxDepth)
	if err != nil {
		return bson.Missing, 0, invalid("%v", err)
	}
	return v, 2 + n, nil
}

// maxDepth is how deep a value may nest that becomes a field of a document.
const maxDepth = bson.MaxDepth - 1
