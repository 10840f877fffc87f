package meaning

import (
	"encoding/binary"
	"math"

	"github.com/ebbdb/ebb/internal/storage/layout"
)

// DocumentOp is what happens to a document.
type DocumentOp byte

// What may happen to a document.
const (
	DocumentInserted DocumentOp = 1 + iota
	DocumentUpdated
	// DocumentMoved: its record has another id; the document is as it was.
	DocumentMoved
	DocumentDeleted
	// DocumentExpired: it was deleted because it had expired.
	DocumentExpired
)

// DocumentChange is what happens to one document.
type DocumentChange struct {
	Op DocumentOp
	// ID is the record's, before where it goes. Was is what it was when an update or a move gives it another; nil elsewhere.
	ID, Was layout.RecordID
	// Bytes and WasBytes are the lengths of the document, after and before; 0 where there is none.
	Bytes, WasBytes int64
}

// documentChanges are many of them, one behind the other:
//
//	op, 1 byte, with idChanges | length, id | length, former id, where it changes | length after, length before, as varints
type documentChanges []byte

// idChanges is set in an op behind whose id another follows.
const idChanges = 0x80

func (d documentChanges) with(c DocumentChange) documentChanges {
	op := byte(c.Op)
	if c.Was != nil {
		op |= idChanges
	}
	d = append(append(d, op), byte(len(c.ID)))
	if len(c.ID) >= 0x80 {
		d = binary.AppendUvarint(d[:len(d)-1], uint64(len(c.ID)))
	}
	d = append(d, c.ID...)
	if c.Was != nil {
		d = append(binary.AppendUvarint(d, uint64(len(c.Was))), c.Was...)
	}
	return binary.AppendUvarint(binary.AppendUvarint(d, uint64(c.Bytes)), uint64(c.WasBytes))
}

// next is the first of them, and the others; ok is false where there is none, or it is broken.
func (d documentChanges) next() (c DocumentChange, rest documentChanges, ok bool) {
	if len(d) == 0 {
		return c, nil, false
	}
	c.Op, rest = DocumentOp(d[0]&^idChanges), d[1:]
	if c.ID, rest, ok = rest.id(); ok && d[0]&idChanges != 0 {
		c.Was, rest, ok = rest.id()
	}
	if !ok {
		return c, nil, false
	}
	if c.Bytes, rest, ok = rest.length(); ok {
		c.WasBytes, rest, ok = rest.length()
	}
	return c, rest, ok
}

func (d documentChanges) length() (n int64, rest documentChanges, ok bool) {
	v, read := binary.Uvarint(d)
	if read <= 0 || v > math.MaxInt32 {
		return 0, nil, false
	}
	return int64(v), d[read:], true
}

func (d documentChanges) id() (id layout.RecordID, rest documentChanges, ok bool) {
	n, rest, ok := d.length()
	if !ok || n > int64(len(rest)) {
		return nil, nil, false
	}
	return layout.RecordID(rest[:n:n]), rest[n:], true
}
