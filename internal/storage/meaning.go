package storage

import (
	"encoding/binary"
	"math"

	"github.com/ebbdb/ebb/internal/catalog"
	"github.com/ebbdb/ebb/internal/index"
	"github.com/ebbdb/ebb/internal/storage/expiryorder"
	"github.com/ebbdb/ebb/internal/storage/multikey"
)

// Meaning is what a Commit means, beside the keys that it writes: all that the store, and whoever follows it, has to learn from
// it. Its writer puts it together while it works; Store.apply is the only one that acts on it.
type Meaning struct {
	// Number is the Commit's, once it is ordered.
	Number uint64
	// Changes are what happens to the data of collections, each of which is there once.
	Changes []*Change
	// DDL is what happens to the catalogue; nil where nothing does.
	DDL *DDL
	// Hold is where the clock of expiry stands still from this Commit on, notHeld where it goes on; nil: as before.
	Hold *int64

	room [1]*Change
}

func (m *Meaning) add(c *Change) {
	if m.Changes == nil {
		m.Changes = m.room[:0]
	}
	m.Changes = append(m.Changes, c)
}

// Change is what a Commit does to the data of one collection.
type Change struct {
	Collection uint32

	documents    documentChanges
	lastSequence uint64 // the highest number of a new record
	reserved     uint64 // numbers up to this one are reserved on disk; 0: as before
	multikey     []multikeyChange
	tombstones   tombstoneChange
	sweeps       []sweptSpan
	inserted     bool
	moved        [2]bool  // whether any record moves forward, and back
	trimmed      RecordID // the last record of a capped collection that made room
	earliest     int64    // deadline of what was written
	// listed says that uniqueFloor knows of the new _ids already. It does where they were written.
	listed bool

	room [64]byte // for what happens to one document or two
}

func newChange(collection uint32) Change {
	return Change{Collection: collection, earliest: math.MaxInt64}
}

// multikeyChange is what is stored of an index.
type multikeyChange struct {
	index  uint32
	stored multikey.Stored
}

// tombstoneChange is what happens to the tombstones of a collection.
type tombstoneChange uint8

const (
	tombstonesAsBefore tombstoneChange = iota
	tombstonesSet
	tombstonesDeleted
)

// sweptSpan is what a sweep deletes of a span: all up to a date.
type sweptSpan struct {
	span byte
	date int64
	all  expiryorder.Amount
}

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
	ID, Was RecordID
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

func (d documentChanges) id() (id RecordID, rest documentChanges, ok bool) {
	n, rest, ok := d.length()
	if !ok || n > int64(len(rest)) {
		return nil, nil, false
	}
	return RecordID(rest[:n:n]), rest[n:], true
}

// note takes note of what happens to a document.
func (c *Change) note(d DocumentChange) {
	if c.documents == nil {
		c.documents = c.room[:0]
	}
	c.documents = c.documents.with(d)
}

// EachDocument calls f for each document that changes, in the order of the changes.
func (c *Change) EachDocument(f func(DocumentChange)) {
	for d, rest, ok := c.documents.next(); ok; d, rest, ok = rest.next() {
		f(d)
	}
}

// DDL is what a Commit does to the catalogue.
type DDL struct {
	// Events are what it means to those who use the collections.
	Events []Event

	steps []catalogStep
	// multikey is what is stored of indexes that are new.
	multikey map[uint32]*multikey.Stored
	// The first numbers that no collection and no index ever had.
	nextCollection, nextIndex uint32
}

// catalogStep puts a collection into the catalogue or, where there is none, drops one.
type catalogStep struct {
	put  *catalog.Collection
	drop uint32
}

// applyTo is the catalogue after the steps.
func (d *DDL) applyTo(c *catalog.Catalog) *catalog.Catalog {
	for _, step := range d.steps {
		if step.put != nil {
			c = c.With(step.put)
		} else if gone := c.ByID(step.drop); gone != nil {
			c = c.Without(gone)
		}
	}
	return c
}

// multikeyOf is what is stored of a new index, in memory.
func (d *DDL) multikeyOf(def *index.Definition) *multikey.Index {
	return d.multikey[def.ID].InMemory(def)
}
