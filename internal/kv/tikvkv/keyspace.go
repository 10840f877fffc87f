package tikvkv

import (
	"encoding/binary"
	"errors"
	"fmt"
	"regexp"

	"github.com/ebbdb/ebb/internal/kv"
)

// Where the keys of one keyspace lie in the cluster. All begin with its root, so that several keyspaces, and others who use the cluster, do not
// meet. The rows by which servers agree come first: the first key of a transaction is the one that decides it (see committer).
//
//	ebb 00 name 00 01        the lease
//	ebb 00 name 00 02 n      slot n
//	ebb 00 name 00 02 ff e   says that epoch e has ended
//	ebb 00 name 00 03        the format
//	ebb 00 name 00 04 key    the pair of a key
//	ebb 00 name 00 05 ...    the parts of a long value
//	ebb 00 name 00 06 key    the range tombstone that begins with a key
const (
	leaseArea  = 1
	slotArea   = 2
	formatArea = 3
	pairArea   = 4
	partArea   = 5
	rangeArea  = 6
)

// format is the version of all that. The first had no range tombstones, and no values that tell their number; it becomes the second when a server takes
// the keyspace.
const (
	format      = 2
	firstFormat = 1
)

// DefaultKeyspace is the name of the keyspace that is used where none is named.
const DefaultKeyspace = "default"

var keyspaceName = regexp.MustCompile(`^[A-Za-z0-9_-]{1,64}$`)

// CheckKeyspace refuses what cannot be the name of a keyspace.
func CheckKeyspace(name string) error {
	if !keyspaceName.MatchString(name) {
		return fmt.Errorf("the name of a keyspace is 1 to 64 letters, digits, - and _, not %q", name)
	}
	return nil
}

// keyspace makes the keys of one keyspace.
type keyspace struct {
	root         []byte
	first, limit []byte // of the pairs
}

func newKeyspace(name string) keyspace {
	k := keyspace{root: append([]byte("ebb\x00"+name), 0)}
	k.first, k.limit = k.in(pairArea), k.in(pairArea+1)
	return k
}

func (k keyspace) in(area byte) []byte {
	return append(append(make([]byte, 0, len(k.root)+1), k.root...), area)
}

func (k keyspace) lease() []byte { return k.in(leaseArea) }

func (k keyspace) slot(n int) []byte { return append(k.in(slotArea), byte(n)) }

// ended is beside the slots, so that it is in one region with them.
func (k keyspace) ended(epoch uint64) []byte {
	return binary.BigEndian.AppendUint64(append(k.in(slotArea), 0xff), epoch)
}

func (k keyspace) format() []byte { return k.in(formatArea) }

func (k keyspace) pair(key []byte) []byte {
	out := make([]byte, 0, len(k.first)+len(key))
	return append(append(out, k.first...), key...)
}

// maxKeyBytes is how long a key may be. TiKV takes 8 KiB (storage.max-key-size) of a key in a form that is longer by an eighth, and before it comes what a
// keyspace's keys begin with.
const maxKeyBytes = 7000

// bound is where a key belongs among the stored ones; one that is longer than any has no pair.
func (k keyspace) bound(key []byte) []byte {
	if len(key) <= maxKeyBytes {
		return k.pair(key)
	}
	return append(k.pair(key[:maxKeyBytes]), 0)
}

// bounds are the stored bounds of a range; nil leaves a side open.
func (k keyspace) bounds(lower, upper []byte) (from, to []byte) {
	from, to = k.first, k.limit
	if lower != nil {
		from = k.bound(lower)
	}
	if upper != nil {
		to = k.bound(upper)
	}
	return from, to
}

// part is the key of one part of a long value. The key's length comes first, so that no two keys have a part in common.
func (k keyspace) part(key []byte, n int) []byte {
	out := binary.BigEndian.AppendUint32(k.in(partArea), uint32(len(key)))
	return binary.BigEndian.AppendUint32(append(out, key...), uint32(n))
}

// partOf is the inverse of part.
func (k keyspace) partOf(stored []byte) (key []byte, n int, err error) {
	rest := stored[len(k.root)+1:]
	if len(rest) < 8 || uint64(len(rest)) != 8+uint64(binary.BigEndian.Uint32(rest)) {
		return nil, 0, kv.Damaged(fmt.Errorf("tikvkv: %x is no key of a part of a value", stored))
	}
	return rest[4 : len(rest)-4], int(binary.BigEndian.Uint32(rest[len(rest)-4:])), nil
}

// A stored value begins with its form: TiKV keeps no empty values, and takes none above the limit of a raft entry.
const (
	wholeValue    = 0 // the value follows
	partsValue    = 1 // it lies in so many parts, a uint32, beside the key
	numberedValue = 2 // the number of the commit that wrote it follows, a uint64, and then one of the forms above, or the sum of a counter
)

// encodeNumber is what is stored at a key in the range of a tombstone, where it has to be known which commit wrote it.
func encodeNumber(number uint64, stored []byte) []byte {
	out := make([]byte, 0, numberedLength+len(stored))
	return append(binary.BigEndian.AppendUint64(append(out, numberedValue), number), stored...)
}

// decodeNumber is the number that a stored value tells, 0 where it tells none, and the rest of it.
func decodeNumber(stored []byte) (number uint64, rest []byte) {
	if len(stored) > numberedLength && stored[0] == numberedValue {
		return binary.BigEndian.Uint64(stored[1:]), stored[numberedLength:]
	}
	return 0, stored
}

const numberedLength = 1 + 8

// partBytes is how long a part is, and a value that has none. A raft entry holds 8 MiB; and TiKV's answers, which hold 10 MiB, have so many of
// these at once.
const partBytes = 256 << 10

// maxParts bounds how many parts a value may say that it has.
const maxParts = 1 << 10

// encodeValue is value as it is stored, and its parts if it has any.
func encodeValue(value []byte) (stored []byte, parts [][]byte) {
	if len(value) <= partBytes {
		return append(append(make([]byte, 0, 1+len(value)), wholeValue), value...), nil
	}
	for len(value) > 0 {
		n := min(partBytes, len(value))
		parts, value = append(parts, value[:n]), value[n:]
	}
	return binary.BigEndian.AppendUint32([]byte{partsValue}, uint32(len(parts))), parts
}

var errForm = kv.Damaged(errors.New("tikvkv: a stored value has no form that is known"))

// decodeValue is the value, or in how many parts it lies.
func decodeValue(stored []byte) (value []byte, parts int, err error) {
	switch {
	case len(stored) > 0 && stored[0] == wholeValue:
		return stored[1:], 0, nil
	case len(stored) == 5 && stored[0] == partsValue:
		if n := binary.BigEndian.Uint32(stored[1:]); n > 0 && n <= maxParts {
			return nil, int(n), nil
		}
	}
	return nil, 0, errForm
}

// encodeCounter and decodeCounter are for the sum that a counter's key holds.
func encodeCounter(sum int64) []byte { return binary.BigEndian.AppendUint64(nil, uint64(sum)) }

func decodeCounter(stored []byte) (int64, error) {
	if len(stored) != 8 {
		return 0, kv.Damaged(fmt.Errorf("tikvkv: a counter has %d bytes, want 8", len(stored)))
	}
	return int64(binary.BigEndian.Uint64(stored)), nil
}
