package layout

import (
	"encoding/binary"
	"errors"
)

// A side table is where writers note what happens to the entries of an index while that is built. It has an index number
// of its own, under which nothing but these rows is ever stored:
//
//	'x' | side | generation | key string | suffix → operation, length of the record id, record id, type bits
//	'x' | side | 0xFF | record id                  → nothing: that record has no keys; the build fails if it stays so
//
// The suffix is what of the record id is in the entry's key, so that there is one row for each entry that was touched in a
// generation, also where a record moved: the last operation stands.

// The operations of a row.
const (
	SideDelete = 0
	SidePut    = 1
)

// SkippedGeneration is no generation: under it are the records that have no keys.
const SkippedGeneration = 0xFF

// SideKeyLength is the length of what all keys of a generation begin with.
const SideKeyLength = TableLength + 1

// SideKey appends what the keys of a side table's rows begin with.
func SideKey(dst []byte, side uint32, generation byte) []byte {
	return append(Numbered(dst, IndexPrefix, side), generation)
}

// SideRowKey appends the key of the row of an entry.
func (e Entries) SideRowKey(dst []byte, side uint32, generation byte, keyString []byte, id RecordID) []byte {
	return append(append(SideKey(dst, side, generation), keyString...), e.Suffix(id)...)
}

// SideRowValue appends the value of the row of an entry.
func SideRowValue(dst []byte, operation byte, id RecordID, typeBits []byte) []byte {
	dst = binary.AppendUvarint(append(dst, operation), uint64(len(id)))
	return append(append(dst, id...), typeBits...)
}

// SideRow is a row that was read.
type SideRow struct {
	Put       bool
	KeyString []byte
	ID        RecordID
	TypeBits  []byte
}

var errBrokenSideRow = errors.New("storage: a row of a side table is broken")

// ReadSideRow parts a row, which shares the bytes of key and value.
func (e Entries) ReadSideRow(key, value []byte) (SideRow, error) {
	if len(key) < SideKeyLength || len(value) == 0 {
		return SideRow{}, errBrokenSideRow
	}
	id, typeBits, err := SplitID(value[1:])
	if err != nil {
		return SideRow{}, errBrokenSideRow
	}
	key = key[SideKeyLength:]
	end := len(key) - len(e.Suffix(id))
	if end < 0 {
		return SideRow{}, errBrokenSideRow
	}
	return SideRow{value[0] == SidePut, key[:end], id, typeBits}, nil
}
