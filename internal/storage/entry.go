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
	// idLength is how much of a record id is at the end of the keys, 0 when it varies and the value begins with it. Of an
	// ordered id those are its sequence, and the rest is at the end of the value: a record that moves keeps its keys.
	idLength int
}

// suffix is what of the id is in the key of an entry that holds none.
func (e entries) suffix(id RecordID) []byte {
	if e.Kind == index.Deadline || !id.isOrdered() {
		return id
	}
	return id[placeLength:]
}

// idRoom is where the parts of an ordered id are joined.
type idRoom [orderedLength]byte

// appendKey appends the key of the entry.
func (e entries) appendKey(dst, keyString []byte, id RecordID) []byte {
	dst = append(tableKey(dst, e.Definition), keyString...)
	if holdsIDs(e.Definition) {
		return dst
	}
	return append(dst, e.suffix(id)...)
}

func (e entries) appendValue(dst []byte, id RecordID, typeBits []byte) []byte {
	switch {
	case holdsIDs(e.Definition):
		dst = append(binary.AppendUvarint(dst, uint64(len(id))), id...)
	case e.idLength == 0:
		dst = binary.AppendUvarint(dst, uint64(len(id)))
	}
	return e.appendTail(append(dst, typeBits...), id)
}

// appendTail appends what of the id the value ends with.
func (e entries) appendTail(dst []byte, id RecordID) []byte {
	if holdsIDs(e.Definition) || !id.isOrdered() {
		return dst
	}
	return append(dst, id[1:placeLength]...)
}

// read parts an entry; the parts share its bytes, and those of room.
func (e entries) read(key, value []byte, room *idRoom) (IndexEntry, error) {
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
		if key[at] < orderedMark {
			return IndexEntry{key[:at], value, key[at:]}, nil
		}
		return joinOrdered(key, at, value, room)
	}
	n, used := binary.Uvarint(value)
	if used <= 0 || n > uint64(len(key)) {
		return IndexEntry{}, errBrokenEntry
	}
	at := len(key) - int(n)
	return IndexEntry{key[:at], value[used:], key[at:]}, nil
}

// joinOrdered is an entry with an ordered id, whose sequence begins in the key at at.
func joinOrdered(key []byte, at int, value []byte, room *idRoom) (IndexEntry, error) {
	bits := len(value) - tailLength
	if bits < 0 {
		return IndexEntry{}, errBrokenEntry
	}
	room[0] = orderedMark
	copy(room[1:], value[bits:])
	copy(room[placeLength:], key[at:])
	return IndexEntry{key[:at], value[:bits], room[:]}, nil
}

// id is the record that an entry of any kind of index is about.
func (e entries) id(key, value []byte, room *idRoom) (RecordID, error) {
	if e.Kind != index.Deadline {
		entry, err := e.read(key, value, room)
		return entry.RecordID, err
	}
	if len(key) < tableLength+1+8 {
		return nil, errBrokenEntry
	}
	return key[tableLength+1+8:], nil
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
