package storage

import (
	"encoding/binary"
	"errors"

	"github.com/ebbdb/ebb/internal/index"
)

var errBrokenEntry = errors.New("storage: an index entry is broken")

// IndexEntry is one entry of an index. Its slices are valid until the cursor moves.
type IndexEntry struct {
	// Key is the key string, TypeBits what is needed beside it to decode the values exactly.
	Key, TypeBits []byte
	RecordID      RecordID
}

// entries knows how one index's entries are laid out.
type entries struct {
	*index.Definition
	// idLength is the length of the collection's record ids, 0 when it varies.
	idLength int
}

// appendKey appends the key of the entry.
func (e entries) appendKey(dst, keyString []byte, id RecordID) []byte {
	dst = append(tableKey(dst, e.Definition), keyString...)
	if holdsIDs(e.Definition) {
		return dst
	}
	return append(dst, id...)
}

func (e entries) appendValue(dst []byte, id RecordID, typeBits []byte) []byte {
	switch {
	case holdsIDs(e.Definition):
		dst = append(binary.AppendUvarint(dst, uint64(len(id))), id...)
	case e.idLength == 0:
		dst = binary.AppendUvarint(dst, uint64(len(id)))
	}
	return append(dst, typeBits...)
}

// read parts an entry; the parts share its bytes.
func (e entries) read(key, value []byte) (IndexEntry, error) {
	key = key[tableLength:]
	switch {
	case holdsIDs(e.Definition):
		id, bits, err := splitID(value)
		return IndexEntry{key, bits, id}, err
	case e.idLength > 0:
		at := len(key) - e.idLength
		if at < 0 {
			return IndexEntry{}, errBrokenEntry
		}
		return IndexEntry{key[:at], value, key[at:]}, nil
	}
	n, used := binary.Uvarint(value)
	if used <= 0 || n > uint64(len(key)) {
		return IndexEntry{}, errBrokenEntry
	}
	at := len(key) - int(n)
	return IndexEntry{key[:at], value[used:], key[at:]}, nil
}

// splitID parts the value of an entry that holds a record id.
func splitID(value []byte) (id RecordID, typeBits []byte, err error) {
	n, used := binary.Uvarint(value)
	if used <= 0 || n > uint64(len(value)-used) {
		return nil, nil, errBrokenEntry
	}
	end := used + int(n)
	return RecordID(value[used:end]), value[end:], nil
}
