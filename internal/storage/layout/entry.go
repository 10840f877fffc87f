package layout

import (
	"encoding/binary"
	"errors"

	"github.com/ebbdb/ebb/internal/index"
)

// errBrokenEntry is of an index entry that cannot be read.
var errBrokenEntry = errors.New("storage: an index entry is broken")

// IndexEntry is one entry of an index. Its slices are valid until the cursor moves.
type IndexEntry struct {
	// Key is the key string, TypeBits what is needed beside it to decode the values exactly.
	Key, TypeBits []byte
	RecordID      RecordID
}

// Entries knows how one index's entries are laid out.
type Entries struct {
	*index.Definition
	// IDLength is how much of a record id is at the end of the keys, 0 when it varies and the value begins with it. Of an
	// ordered id that is its number, and the rest is at the end of the value: a record that moves keeps its keys.
	IDLength int
}

// HoldsIDs says whether the entries of d carry the record id in their value, so that a key string exists once.
func HoldsIDs(d *index.Definition) bool { return d.Unique || d.IsID() }

// HoldsIDs says whether the entries carry the record id in their value, so that a key string exists once.
func (e Entries) HoldsIDs() bool { return HoldsIDs(e.Definition) }

// Suffix is what of the id is in the key of an entry that holds none.
func (e Entries) Suffix(id RecordID) []byte {
	if e.Kind == index.Deadline || !id.IsOrdered() {
		return id
	}
	return id[PlaceLength:]
}

// IDRoom is where the parts of an ordered id are joined.
type IDRoom [OrderedLength]byte

// EntryKey appends the key of an entry.
func (e Entries) EntryKey(dst, keyString []byte, id RecordID) []byte {
	dst = append(TableKey(dst, e.Definition), keyString...)
	if e.HoldsIDs() {
		return dst
	}
	return append(dst, e.Suffix(id)...)
}

// EntryValue appends the value of an entry.
func (e Entries) EntryValue(dst []byte, id RecordID, typeBits []byte) []byte {
	switch {
	case e.HoldsIDs():
		dst = append(binary.AppendUvarint(dst, uint64(len(id))), id...)
	case e.IDLength == 0:
		dst = binary.AppendUvarint(dst, uint64(len(id)))
	}
	return e.Tail(append(dst, typeBits...), id)
}

// Tail appends what of the id the value ends with.
func (e Entries) Tail(dst []byte, id RecordID) []byte {
	if e.HoldsIDs() || !id.IsOrdered() {
		return dst
	}
	return append(dst, id[1:PlaceLength]...)
}

// ReadEntry parts an entry into to, whose parts then share its bytes, and those of room. It is called for each key of a scan, and
// so fills what is there instead of handing it up.
func (e Entries) ReadEntry(to *IndexEntry, key, value []byte, room *IDRoom) (err error) {
	key = key[TableLength:]
	switch {
	case e.HoldsIDs():
		to.Key = key
		to.RecordID, to.TypeBits, err = SplitID(value)
		return err
	case e.IDLength > 0:
		at := len(key) - e.IDLength
		if at < 0 {
			return errBrokenEntry
		}
		if key[at] < OrderedMark {
			to.Key, to.TypeBits, to.RecordID = key[:at], value, key[at:]
			return nil
		}
		return to.joinOrdered(key, at, value, room)
	}
	n, used := binary.Uvarint(value)
	if used <= 0 || n > uint64(len(key)) {
		return errBrokenEntry
	}
	at := len(key) - int(n)
	to.Key, to.TypeBits, to.RecordID = key[:at], value[used:], key[at:]
	return nil
}

// joinOrdered makes an entry with an ordered id, whose number begins in the key at at.
func (to *IndexEntry) joinOrdered(key []byte, at int, value []byte, room *IDRoom) error {
	bits := len(value) - tailLength
	if bits < 0 {
		return errBrokenEntry
	}
	room[0] = OrderedMark
	copy(room[1:], value[bits:])
	copy(room[PlaceLength:], key[at:])
	to.Key, to.TypeBits, to.RecordID = key[:at], value[:bits], room[:]
	return nil
}

// EntryID is the record that an entry of any kind of index is about.
func (e Entries) EntryID(key, value []byte, room *IDRoom) (RecordID, error) {
	if e.Kind != index.Deadline {
		var entry IndexEntry
		err := e.ReadEntry(&entry, key, value, room)
		return entry.RecordID, err
	}
	if len(key) < TableLength+1+8 {
		return nil, errBrokenEntry
	}
	return key[TableLength+1+8:], nil
}

// SplitID parts the value of an entry that holds a record id.
func SplitID(value []byte) (id RecordID, typeBits []byte, err error) {
	n, used := binary.Uvarint(value)
	if used <= 0 || n > uint64(len(value)-used) {
		return nil, nil, errBrokenEntry
	}
	end := used + int(n)
	return RecordID(value[used:end]), value[end:], nil
}
