// Package meaning is what a Commit means, beside the keys that it writes: what happens to which documents of which collection, and to the
// catalogue. It is data, and the form in which it travels (AppendBinary, Decode). Who puts it together and who acts on it is the store's.
package meaning

import (
	"math"

	"github.com/ebbdb/ebb/internal/kv"
	"github.com/ebbdb/ebb/internal/storage/expiryorder"
	"github.com/ebbdb/ebb/internal/storage/layout"
	"github.com/ebbdb/ebb/internal/storage/multikey"
	"github.com/ebbdb/ebb/internal/storage/oplog"
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
	// Hold is where the clock of expiry stands still from this Commit on, expiryclock.NotHeld where it goes on; nil: as before.
	Hold *int64
	// Timestamp is that of the last entry that the Commit has in the oplog, once it is ordered; 0 where there is none.
	Timestamp oplog.Timestamp
	// Entries are those that have no timestamps yet, in the order of Commit.Stamped, and Term the one that they are of. They are not
	// encoded: who follows gets entries that are complete.
	Entries []oplog.Entry
	Term    int64
	// Before is the entry before these in their session, and References are where the last timestamp goes beside the entries.
	Before     oplog.OpTime
	References []oplog.Reference

	room [2]*Change // of a collection, and of the oplog
	told told
}

// told is memory for what most commits tell of themselves: one entry, and what is kept of a session. With it they are one piece with the Meaning.
type told struct {
	change     Change // of the oplog
	key        [layout.TableLength + layout.SequenceLength]byte
	entry      [1]oplog.Entry
	references [1]oplog.Reference
	write      [1]kv.Op
}

// Add has the Commit change another collection.
func (m *Meaning) Add(c *Change) {
	if m.Changes == nil {
		m.Changes = m.room[:0]
	}
	m.Changes = append(m.Changes, c)
}

// Change is what a Commit does to the data of one collection.
type Change struct {
	Collection uint32

	documents documentChanges
	// LastSequence is the highest number of a new record; numbers up to Reserved are reserved on disk, 0 for as before.
	LastSequence, Reserved uint64
	Multikey               []MultikeyChange
	Tombstones             TombstoneChange
	Sweeps                 []SweptSpan
	// Inserted says that there are new documents; Moved, whether any record moves Forward, and Back.
	Inserted bool
	Moved    [2]bool
	// Trimmed is the last record of a capped collection that made room.
	Trimmed layout.RecordID
	// Earliest is the earliest deadline of what was written.
	Earliest int64
	// Listed says that the writer has listed the new _ids where it looks whether one is new. It is not encoded: who follows has not.
	Listed bool

	room [64]byte // for what happens to one document or two
}

// What Change.Moved has two of: the ways in which a record may move in its collection's order.
const (
	Forward = 0
	Back    = 1
)

// NewChange is a change that does nothing yet.
func NewChange(collection uint32) Change {
	return Change{Collection: collection, Earliest: math.MaxInt64}
}

// MultikeyChange is what is stored of an index.
type MultikeyChange struct {
	Index  uint32
	Stored multikey.Stored
}

// TombstoneChange is what happens to the tombstones of a collection.
type TombstoneChange uint8

// What may happen to them.
const (
	TombstonesAsBefore TombstoneChange = iota
	TombstonesSet
	TombstonesDeleted
)

// SweptSpan is what a sweep deletes of a span: all up to a date, but for what is Spared, which All counts as well.
type SweptSpan struct {
	Span   byte
	Date   int64
	All    expiryorder.Amount
	Spared []expiryorder.Change
}

// Note takes note of what happens to a document.
func (c *Change) Note(d DocumentChange) {
	if c.documents == nil {
		c.documents = c.room[:0]
	}
	c.documents = c.documents.with(d)
}

// HasDocuments says whether any document changes.
func (c *Change) HasDocuments() bool { return len(c.documents) > 0 }

// EachDocument calls f for each document that changes, in the order of the changes.
func (c *Change) EachDocument(f func(DocumentChange)) {
	for d, rest, ok := c.documents.next(); ok; d, rest, ok = rest.next() {
		f(d)
	}
}

// AddToHistogram has the histogram of an order take account of the documents that come to where they lie, or go from there.
func (c *Change) AddToHistogram(o *expiryorder.Order) {
	o.Histogram.AddEach(func(add func(expiryorder.Change)) {
		c.EachDocument(func(d DocumentChange) {
			was := d.ID
			if d.Was != nil {
				was = d.Was
			}
			if d.Op != DocumentInserted {
				if span, date, ok := o.Of(was); ok {
					add(expiryorder.Change{Span: span, Date: date, Documents: -1, Bytes: -d.WasBytes})
				}
			}
			if d.Op > DocumentMoved {
				return
			}
			if span, date, ok := o.Of(d.ID); ok {
				add(expiryorder.Change{Span: span, Date: date, Documents: 1, Bytes: d.Bytes})
			}
		})
	})
}
