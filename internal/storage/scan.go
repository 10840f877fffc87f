package storage

import (
	"fmt"
	"math"

	"github.com/ebbdb/ebb/internal/bson"
	"github.com/ebbdb/ebb/internal/index"
	"github.com/ebbdb/ebb/internal/keystring"
	"github.com/ebbdb/ebb/internal/kv"
	"github.com/ebbdb/ebb/internal/storage/expiryorder"
	"github.com/ebbdb/ebb/internal/storage/layout"
	"github.com/ebbdb/ebb/internal/storage/walk"
)

// RecordScan says which records a RecordCursor walks, in the order of their ids.
type RecordScan struct {
	// Low is inclusive, High exclusive; nil leaves that side open.
	Low, High RecordID
	Reverse   bool
	// Ordered leaves out what does not lie in the order of expiry, where Low is nil.
	Ordered bool
	// After is the record behind which a scan goes on, in its direction; it need not exist any more.
	After RecordID
}

// RecordCursor walks records. Close it.
type RecordCursor struct {
	reader *Reader
	walk   walk.Keys
	rec    Record
	leaps  bool // the id of a record may tell that it is hidden with many others
	err    error
}

// Scan opens a cursor that stands before its first record. It walks the view as it was when the cursor was opened: a
// transaction's later writes do not move under it.
func (r *Reader) Scan(s RecordScan) (*RecordCursor, error) {
	start := layout.RecordKey(nil, r.c.ID, nil)
	bounds := kv.IterOptions{Lower: start, Upper: layout.After(start)}
	switch {
	case s.Low != nil:
		bounds.Lower = layout.RecordKey(nil, r.c.ID, s.Low)
	case r.isInOrder():
		bounds.Lower = r.c.order.DatedKey(layout.OnDefault, r.floor(layout.OnDefault))
	case s.Ordered:
		bounds.Lower = append(start[:len(start):len(start)], layout.OrderedMark)
	}
	if s.High != nil {
		bounds.Upper = layout.RecordKey(nil, r.c.ID, s.High)
	}
	var after []byte
	if s.After != nil {
		after = layout.RecordKey(nil, r.c.ID, s.After)
	}
	c := &RecordCursor{reader: r, leaps: r.bounds != expiryorder.HiddenBounds{}}
	if err := c.walk.Open(r.view.ctx, r.view.reader, bounds, s.Reverse, after); err != nil {
		return nil, err
	}
	return c, nil
}

// Next moves to the next record that is there; false at the end or on an error.
func (c *RecordCursor) Next() bool {
	for c.err == nil && c.walk.Next() {
		if c.leaps && c.leap() {
			continue
		}
		if c.err = c.walk.ReadRecord(&c.rec); c.err == nil && !c.reader.hidden(&c.rec) {
			return true
		}
	}
	return false
}

// leap sends the walk past all that is hidden with the record that it stands on, in one go.
func (c *RecordCursor) leap() bool {
	id := RecordID(c.walk.Key()[layout.TableLength:])
	if !c.reader.isBehindBounds(id) {
		return false
	}
	span, _, _ := c.reader.c.order.Of(id)
	if c.walk.Reverse {
		c.walk.Seek(c.reader.c.order.DatedKey(span, math.MinInt64))
	} else {
		c.walk.Seek(layout.After(c.reader.c.order.DatedKey(span, c.reader.bounds[span])))
	}
	return true
}

// Record is the current record, valid until the next move; Clone what must live longer.
func (c *RecordCursor) Record() Record { return c.rec }

// Current is Record for those who look at many and keep few: the cursor's own, which the next move changes.
func (c *RecordCursor) Current() *Record { return &c.rec }

// Err is what ended the walk, nil at its end.
func (c *RecordCursor) Err() error {
	if c.err != nil {
		return c.err
	}
	return c.walk.Err()
}

// Close gives the cursor back; it may be called again.
func (c *RecordCursor) Close() error { return c.walk.Close() }

// IndexPosition is where an index scan stood.
type IndexPosition struct {
	Key      []byte
	RecordID RecordID
}

// IndexScan says which entries of an index an IndexCursor walks, in the order of their keys.
type IndexScan struct {
	Index *index.Definition
	// Low and High are positions among key strings, compared as bytes; Low is inclusive, High exclusive, nil leaves that
	// side open. After(k) is the position behind all entries of the key strings that begin with k.
	Low, High []byte
	Reverse   bool
	// After is the entry behind which a scan goes on, in its direction; it need not exist any more. With Again the scan begins
	// with that entry itself, if it is there.
	After *IndexPosition
	Again bool
	// Fetches says that the caller gets every record it uses by its id, which tells what is hidden. Otherwise the cursor
	// looks itself, where the collection hides anything.
	Fetches bool
	// Ahead lets the cursor read so many entries, MaxAhead at most, before the first is asked for, and more of a long scan, so that Upcoming tells of
	// them.
	Ahead int
	// Spans, when not nil, are what the scan is for; Low and High are their ends. Where the walk has met an entry outside of them it goes on at
	// the beginning of the next.
	Spans *Spans
}

// IndexCursor walks the entries of an index. Close it.
type IndexCursor struct {
	reader  *Reader
	entries layout.Entries
	check   bool
	dead    expiryorder.Tombstones // what has been swept and is still in the index
	room    layout.IDRoom
	walk    walk.Keys
	entry   IndexEntry
	current *IndexEntry   // entry, or one of those ahead
	place   place         // of current, where there are spans
	spans   *spanWalk     // nil: all is one
	ahead   *entriesAhead // nil: it reads each entry when it is asked for
	single  bool          // and so it does as long as nothing is left of what it has read ahead
	e       error
	seek    []byte
}

// ScanIndex opens a cursor that stands before its first entry. The index must be one of the collection's that keeps
// entries by value.
func (r *Reader) ScanIndex(s IndexScan) (*IndexCursor, error) {
	bounds, err := r.entryBounds(s.Index, s.Low, s.High)
	if err != nil {
		return nil, err
	}
	ix := r.c.index(s.Index.ID)
	var after []byte
	if s.After != nil {
		after = ix.EntryKey(nil, s.After.Key, s.After.RecordID)
	}
	c := &IndexCursor{reader: r, entries: ix.Entries, check: r.hides && !s.Fetches}
	c.current = &c.entry
	if c.dead, err = r.swept(); err != nil {
		return nil, err
	}
	if s.Again && s.Reverse {
		after = layout.After(after)
	}
	if s.Ahead > 0 {
		c.ahead = &entriesAhead{first: s.Ahead}
	}
	c.place.inside = true
	c.walk.Again = s.Again
	if err := c.walk.Open(r.view.ctx, r.view.reader, bounds, s.Reverse, after); err != nil {
		return nil, err
	}
	if s.Spans == nil {
		return c, nil
	}
	c.spans = newSpanWalk(s.Spans, c, s.Reverse)
	c.place.span = s.Spans.First
	switch {
	case after != nil: // it may end in the span that it goes on in
		c.spans.told = s.Spans.First + 1
	case s.Reverse:
		c.spans.begin(c, bounds.Upper)
	default:
		c.spans.begin(c, bounds.Lower)
	}
	return c, nil
}

// Next moves to the next entry; false at the end or on an error.
func (c *IndexCursor) Next() bool {
	for c.e == nil && c.read() {
		if !c.place.inside {
			return true
		}
		if c.dead.Cover(c.current.RecordID) {
			continue
		}
		if !c.check {
			return true
		}
		var there bool
		if _, there, c.e = c.reader.Get(c.current.RecordID); there {
			return true
		}
	}
	return false
}

// read makes the current entry the next one there is.
func (c *IndexCursor) read() bool {
	if c.ahead != nil && (!c.single || !c.ahead.isEmpty()) {
		return c.ahead.next(c)
	}
	if !c.walk.Next() {
		return false
	}
	c.current = &c.entry
	if c.e = c.walk.ReadEntry(&c.entry, c.entries, &c.room); c.e != nil {
		return false
	}
	if c.spans != nil {
		c.place = c.enter(c.entry.Key, c.place.span)
	}
	return true
}

// enter is the place of an entry, and sends the walk on to the next span when it lies outside of them.
func (c *IndexCursor) enter(key []byte, span int) place {
	p, to := c.spans.place(key, span)
	if to != nil {
		c.spans.leap(c, p.span, to)
	}
	return p
}

// Inside says whether the current entry lies in a span; if not, the next one is where the next span begins, or behind that.
func (c *IndexCursor) Inside() bool { return c.place.inside }

// IsOver says that no span lies at the current entry or behind it.
func (c *IndexCursor) IsOver() bool { return c.place.over }

// Span is that of the current entry, or the one that comes next.
func (c *IndexCursor) Span() int { return c.place.span }

// Upcoming appends the records of the entries that have been read and not been given yet, valid until the next move.
func (c *IndexCursor) Upcoming(dst []RecordID) []RecordID {
	if c.ahead == nil {
		return dst
	}
	return c.ahead.upcoming(dst)
}

// ReadAhead has a cursor that reads ahead go on with that, or rest from it: what nobody wants to know early need not be kept.
func (c *IndexCursor) ReadAhead(on bool) { c.single = !on }

// Seek makes the next Next move to the first entry whose key is key or behind it; in a reverse scan, to the first one
// that is before it.
func (c *IndexCursor) Seek(key []byte) {
	c.seek = append(layout.TableKey(c.seek[:0], c.entries.Definition), key...)
	c.seekTo(c.seek)
}

func (c *IndexCursor) seekTo(key []byte) {
	if c.ahead != nil {
		c.ahead.forget()
	}
	c.walk.Seek(key)
}

// SeekPast makes the next Next move behind all entries whose key begins with prefix, in the direction of the scan: prefix is
// the key of some of the leading fields, whole values.
func (c *IndexCursor) SeekPast(prefix []byte) {
	if c.walk.Reverse {
		c.Seek(prefix)
		return
	}
	c.seek = layout.After(append(layout.TableKey(c.seek[:0], c.entries.Definition), prefix...))
	c.seekTo(c.seek)
}

// Values appends to dst the values of the current entry's key, a value a field, which live as long as the caller likes. They
// are the very values that were indexed, but that a missing one is null and an empty array undefined, and that strings
// cannot be had back where the index has a collation: see index.Definition.Restores.
func (c *IndexCursor) Values(dst []bson.Value) ([]bson.Value, error) {
	dst, _, err := keystring.Decode(dst, c.current.Key, c.current.TypeBits, c.entries.Width())
	if err != nil {
		return dst, fmt.Errorf("storage: decode a key of index %s: %w", c.entries.Name, err)
	}
	return dst, nil
}

// Entry is the current entry, valid until the next move.
func (c *IndexCursor) Entry() *IndexEntry { return c.current }

// Err is what ended the walk, nil at its end.
func (c *IndexCursor) Err() error {
	if c.e != nil {
		return c.e
	}
	return c.walk.Err()
}

// Close gives the cursor back; it may be called again.
func (c *IndexCursor) Close() error { return c.walk.Close() }
