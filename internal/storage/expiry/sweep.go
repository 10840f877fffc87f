// Package expiry deletes what has expired as whole stretches of keys, and removes what that leaves behind. It works in transactions
// that its callers begin and commit while they hold what locks there are; it knows no Store.
package expiry

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"slices"

	"github.com/ebbdb/ebb/internal/kv"
	"github.com/ebbdb/ebb/internal/storage/due"
	"github.com/ebbdb/ebb/internal/storage/expiryorder"
	"github.com/ebbdb/ebb/internal/storage/layout"
	"github.com/ebbdb/ebb/internal/storage/meaning"
	"github.com/ebbdb/ebb/internal/storage/walk"
)

// Sweep deletes all records of a collection that have expired by the rule that orders it: one range deletion of the records and
// one of the rule's index entries, however many there are. The entries of other indexes stay and are known to be dead by a
// tombstone.
//
// While it works nobody else writes to the collection, so that no transaction of one write is under way that has read what is deleted, and the
// histogram of the order agrees with the records. All records lie in the order. What open transactions of several statements have written
// is spared.
type Sweep struct {
	Txn    kv.Txn
	Dates  *due.Source // in Txn
	Tables []Table
	// LastNumber is the highest number that was given to any record.
	LastNumber func() (uint64, error)
	// MostCounted is how many records are counted of a slot of the histogram, from each of its ends.
	MostCounted int
	// Written are the keys of records, in order, that open transactions have read and written, or have put there; and IsWritten says that they
	// may have written entries as well.
	Written   []string
	IsWritten bool
	// MostSpared and MostSparedBytes bound what of them is written again.
	MostSpared, MostSparedBytes int
	// Tell, unless nil, is called with each record that is deleted, in their order in each span. Where it wants no more the sweep ends
	// behind that record, in the middle of a date if need be.
	Tell   func(layout.Record) (more bool, err error)
	Logger *slog.Logger

	// Parts are what is deleted; so many documents, of so many bytes, that have so many index entries.
	Parts                     []Part
	Documents, Bytes, Entries int64
	// More says that Tell has ended the sweep.
	More bool
	// Tombstones are those of the collection after the sweep; none when nothing is left in it.
	Tombstones expiryorder.Tombstones

	spared, sparedBytes int
}

// Table is an index that keeps entries.
type Table struct {
	layout.Entries
	// IsMultikey says that some document has several entries.
	IsMultikey bool
}

// Part is what is swept of one span.
type Part struct {
	Cut    expiryorder.Cut
	Amount expiryorder.Amount
	// Spared are stored records that are left.
	Spared []Spared

	floor     int64              // no record is dated before it
	begin     layout.RecordID    // of the date of the floor, behind which what is stored begins; nil where it begins with the date
	last      layout.RecordID    // behind which it ends, dated a millisecond after the cut; nil where it ends with the cut
	low, high []byte             // of the records
	slot      expiryorder.Slot   // the last, which the cut may lie in the middle of
	within    expiryorder.Amount // what of it is swept
	written   []string           // the keys of Sweep.Written up to high
}

// Spared is a record that a sweep leaves where it is.
type Spared struct {
	Key    string
	value  []byte
	change expiryorder.Change // by which the histogram has it again
}

// Plan finds out what is to be deleted at now and how much that is. There are no Parts when it has to be done one by one, since too
// many sweeps have left entries behind, or there is too much to be spared.
func (s *Sweep) Plan(now int64) (err error) {
	if s.Tombstones, err = s.Dates.State.Tombstones(); err != nil || len(s.Tombstones) >= expiryorder.MaxTombstones {
		return err
	}
	for _, cut := range expiryorder.Cuts(s.Dates.Order.Rule, now) {
		find := s.part
		if s.Tell != nil {
			find = s.partTold
		}
		p, err := find(cut)
		if err != nil {
			return err
		}
		if s.spared > s.MostSpared || s.sparedBytes > s.MostSparedBytes || len(p.sequences()) > expiryorder.MaxRuns {
			s.Parts, s.Documents, s.Bytes, s.More = nil, 0, 0, false
			return nil
		}
		if p.Amount.Documents > 0 {
			s.Parts = append(s.Parts, p)
			s.Documents += p.Amount.Documents
			s.Bytes += p.Amount.Bytes
		}
		if s.More {
			break
		}
	}
	return nil
}

func (s *Sweep) key(span byte, date int64) []byte {
	return s.Dates.Order.DatedKey(span, date)
}

// part finds what is due in a span.
func (s *Sweep) part(c expiryorder.Cut) (p Part, err error) {
	whole, last, at := s.Dates.Order.Histogram.UpTo(c.Span, c.Date)
	floor := s.Dates.Order.Histogram.Floor(c.Span)
	p = Part{Cut: c, floor: floor, slot: at, low: s.key(c.Span, floor), high: layout.After(s.key(c.Span, c.Date))}
	if last != (expiryorder.Amount{}) && floor <= c.Date {
		var counted bool
		if p.within, counted, err = s.within(p, last); err != nil {
			return p, err
		}
		if !counted { // what is in the slot stays
			first, _ := s.Dates.Order.Histogram.SlotBounds(at)
			p.Cut.Date = first - 1
			p.high = layout.After(s.key(c.Span, first-1))
		}
	}
	p.Amount = expiryorder.Amount{Documents: whole.Documents + p.within.Documents, Bytes: whole.Bytes + p.within.Bytes}
	err = s.spare(&p)
	spared := p.sparedAmount()
	p.Amount.Documents -= spared.Documents
	p.Amount.Bytes -= spared.Bytes
	return p, err
}

// spare finds what of a part is written by open transactions, and which of that is stored.
func (s *Sweep) spare(p *Part) error {
	low, _ := slices.BinarySearch(s.Written, string(s.key(p.Cut.Span, math.MinInt64)))
	high, _ := slices.BinarySearch(s.Written, string(p.high))
	if low >= high {
		return nil
	}
	p.written = s.Written[low:high]
	for _, key := range p.written {
		if key < string(p.low) {
			continue // nothing is stored there
		}
		value, err := s.Txn.Get([]byte(key))
		if errors.Is(err, kv.ErrNotFound) {
			continue // the transaction has put it there
		}
		if err != nil {
			return fmt.Errorf("storage: sweep %s: %w", s.Dates.Collection.NS, err)
		}
		rec, err := layout.ReadRecord(layout.RecordID(key[layout.TableLength:]), value)
		if err != nil {
			return err
		}
		span, date, _ := s.Dates.Order.Of(rec.ID)
		p.Spared = append(p.Spared, Spared{key, value, expiryorder.Change{Span: span, Date: date, Documents: 1, Bytes: int64(len(rec.Doc))}})
		s.spared++
		if s.sparedBytes += len(value); s.spared > s.MostSpared || s.sparedBytes > s.MostSparedBytes {
			return nil
		}
	}
	return nil
}

func (p *Part) sparedAmount() (sum expiryorder.Amount) {
	for _, r := range p.Spared {
		sum.Documents += r.change.Documents
		sum.Bytes += r.change.Bytes
	}
	return sum
}

// Meaning is what the part does to the histogram of the order.
func (p *Part) Meaning() meaning.SweptSpan {
	spared := p.sparedAmount()
	m := meaning.SweptSpan{Span: p.Cut.Span, Date: p.Cut.Date,
		All: expiryorder.Amount{Documents: p.Amount.Documents + spared.Documents, Bytes: p.Amount.Bytes + spared.Bytes}}
	for _, r := range p.Spared {
		m.Spared = append(m.Spared, r.change)
	}
	return m
}

// sequences are those of the records that are spared, stored or not: entries with them are not dead.
func (p *Part) sequences() expiryorder.Sequences {
	numbers := make([]uint64, 0, len(p.written))
	for _, key := range p.written {
		if id := layout.RecordID(key[layout.TableLength:]); id.IsOrdered() {
			numbers = append(numbers, id.Number())
		}
	}
	return expiryorder.SequencesOf(numbers)
}

// partTold is part where each record is told of, and so read: as far as Tell likes.
func (s *Sweep) partTold(c expiryorder.Cut) (p Part, err error) {
	p = Part{Cut: c, floor: s.Dates.Order.Histogram.Floor(c.Span), high: layout.After(s.key(c.Span, c.Date))}
	p.low, p.begin = s.key(c.Span, p.floor), s.goneUpTo(c.Span, p.floor)
	if p.begin != nil {
		p.low = behind(layout.RecordKey(nil, s.Dates.Collection.ID, p.begin))
	}
	var w walk.Keys
	if err := w.Open(s.Dates.Ctx, s.Dates.Snapshot, kv.IterOptions{Lower: p.low, Upper: p.high}, false, nil); err != nil {
		return p, err
	}
	defer w.Close()
	next, _ := slices.BinarySearch(s.Written, string(p.low))
	for w.Next() {
		for next < len(s.Written) && s.Written[next] < string(w.Key()) {
			next++
		}
		if next < len(s.Written) && s.Written[next] == string(w.Key()) {
			continue
		}
		rec, err := w.Record()
		if err != nil {
			return p, err
		}
		more, err := s.Tell(rec)
		if err != nil {
			return p, err
		}
		p.Amount.Documents++
		p.Amount.Bytes += int64(len(rec.Doc))
		if _, date, _ := s.Dates.Order.Of(rec.ID); !more && date > math.MinInt64 { // before which there is no other
			p.last, p.Cut.Date, s.More = rec.ID.Clone(), date-1, true
			p.high = behind(layout.RecordKey(nil, s.Dates.Collection.ID, rec.ID))
			break
		}
	}
	if err := w.Err(); err != nil {
		return p, err
	}
	return p, s.spare(&p)
}

// goneUpTo is the last id of a date, before which no record of a span lies, up to which none is stored: that of the last that the sweep
// before has deleted, in the middle of the date. So what many sweeps delete of one date are as many stretches side by side. Were each to
// begin with the date, the engine would have to cut each by all others, again for every sweep, and who reads next would wait for that.
//
// It is nil where none was deleted, or some were spared. No record is placed there later: its number is a later one.
func (s *Sweep) goneUpTo(span byte, floor int64) layout.RecordID {
	if s.Dates.Order.Clustered {
		return nil
	}
	gone := uint64(0)
	for _, t := range s.Tombstones {
		if t.Order != s.Dates.Order.Number || t.Span != span || t.Date < floor {
			continue
		}
		if len(t.Spared) > 0 {
			return nil
		}
		gone = max(gone, t.Sequence)
	}
	if gone == 0 {
		return nil
	}
	return layout.OrderedID(layout.AppendPlace(nil, s.Dates.Order.Number, span, floor), gone)
}

// behind is the first key behind another.
func behind(key []byte) []byte { return append(key, 0) }

// within is how much of a slot lies before the cut. Records are counted from both of its ends, whichever comes to the cut
// first: at most as many as are deleted, and most often none is behind it. counted is false when those are too many to hold
// the lock for.
func (s *Sweep) within(p Part, total expiryorder.Amount) (before expiryorder.Amount, counted bool, err error) {
	from, to := s.Dates.Order.Histogram.SlotBounds(p.slot)
	var front, back racer
	defer front.close()
	defer back.close()
	if err := front.open(s.Dates.Ctx, s.Dates.Snapshot, s.key(p.Cut.Span, max(from, p.floor)), p.high); err != nil {
		return expiryorder.Amount{}, false, err
	}
	if err := back.open(s.Dates.Ctx, s.Dates.Snapshot, p.high, layout.After(s.key(p.Cut.Span, to))); err != nil {
		return expiryorder.Amount{}, false, err
	}
	for range s.MostCounted {
		if ended, err := back.step(); ended || err != nil {
			return expiryorder.Amount{Documents: total.Documents - back.sum.Documents, Bytes: total.Bytes - back.sum.Bytes}, true, err
		}
		if ended, err := front.step(); ended || err != nil {
			return front.sum, true, err
		}
	}
	return expiryorder.Amount{}, false, nil
}

// racer is one of two counts that race for their end.
type racer struct {
	walk walk.Keys
	sum  expiryorder.Amount
}

func (r *racer) open(ctx context.Context, from kv.Reader, low, high []byte) error {
	return r.walk.Open(ctx, from, kv.IterOptions{Lower: low, Upper: high}, false, nil)
}

func (r *racer) step() (ended bool, err error) {
	if !r.walk.Next() {
		return true, r.walk.Err()
	}
	n, err := r.walk.DocumentBytes()
	r.sum.Documents++
	r.sum.Bytes += n
	return false, err
}

func (r *racer) close() { _ = r.walk.Close() }

// Delete puts it all into the transaction.
func (s *Sweep) Delete() error {
	n := s.Documents
	s.Txn.Add(layout.CounterKey(nil, layout.OfCollection, s.Dates.Collection.ID, layout.CountDocuments), -n)
	s.Txn.Add(layout.CounterKey(nil, layout.OfCollection, s.Dates.Collection.ID, layout.CountBytes), -s.Bytes)
	s.Txn.Add(layout.CounterKey(nil, layout.OfCollection, s.Dates.Collection.ID, layout.CountExpired), n)
	s.Entries = n * int64(len(s.Tables))
	left, err := s.Txn.Counter(layout.CounterKey(nil, layout.OfCollection, s.Dates.Collection.ID, layout.CountDocuments))
	if err != nil {
		return err
	}
	if left == 0 && !s.IsWritten {
		empty, err := s.leavesNothing()
		if err != nil {
			return err
		}
		if empty {
			return s.deleteAll()
		}
		s.Logger.Error("A collection's counter of documents is too low: validate tells more", "namespace", s.Dates.Collection.NS.String())
	}
	if s.Dates.Order.Clustered {
		s.deleteRecords(&s.Parts[0])
		return nil
	}
	last, err := s.LastNumber()
	if err != nil {
		return err
	}
	for i := range s.Parts {
		p := &s.Parts[i]
		s.deleteRecords(p)
		t := expiryorder.Tombstone{Order: s.Dates.Order.Number, Span: p.Cut.Span, Date: p.Cut.Date, Sequence: last, Spared: p.sequences()}
		s.Tombstones = s.Tombstones.With(t)
		if p.last != nil { // those of one date lie in the order of their numbers
			t.Date, t.Sequence = p.last.Date(), p.last.Number()
			s.Tombstones = s.Tombstones.With(t)
		}
	}
	for i := range s.Tables {
		if err := s.deleteEntries(&s.Tables[i], n); err != nil {
			return err
		}
	}
	s.Txn.Set(layout.TombstonesKey(s.Dates.Collection.ID), s.Tombstones.Encode())
	return nil
}

// deleteRecords deletes the records of a part and writes again those that it spares, which comes after that.
func (s *Sweep) deleteRecords(p *Part) {
	s.Txn.DeleteRange(p.low, p.high)
	for _, r := range p.Spared {
		s.Txn.Set([]byte(r.Key), r.value)
	}
}

// deleteEntries deletes the entries of the rule's own index, where that takes them all; those of others stay for Vacuum, as so
// many more than there are documents.
func (s *Sweep) deleteEntries(ix *Table, n int64) error {
	if ix.ID != s.Dates.Order.Rule.Index.ID || !due.IsEmptied(ix.Definition, ix.IsMultikey, s.Tombstones, s.Dates.Order.Number) {
		s.Txn.Add(layout.CounterKey(nil, layout.OfIndex, ix.ID, layout.CountSurplus), n)
		return nil
	}
	rule := s.Dates.Order.Rule
	for _, p := range s.Parts {
		if p.floor <= p.Cut.Date {
			low, high := s.Dates.FieldBounds(rule, p.floor, p.Cut.Date)
			s.Txn.DeleteRange(low, high)
		}
		if p.last != nil {
			low, _ := s.Dates.FieldBounds(rule, p.last.Date(), p.last.Date())
			date := low[layout.TableLength:]
			if p.begin != nil && p.last.Date() == p.floor && !ix.HoldsIDs() {
				low = behind(ix.EntryKey(nil, date, p.begin))
			}
			s.Txn.DeleteRange(low, behind(ix.EntryKey(nil, date, p.last)))
		}
		if err := s.keepEntries(ix, &p); err != nil {
			return err
		}
	}
	return nil
}

// keepEntries writes again the entries of what a part spares, one each.
func (s *Sweep) keepEntries(ix *Table, p *Part) error {
	for _, r := range p.Spared {
		low, _ := s.Dates.FieldBounds(s.Dates.Order.Rule, r.change.Date, r.change.Date)
		key := ix.EntryKey(nil, low[layout.TableLength:], layout.RecordID(r.Key[layout.TableLength:]))
		value, err := s.Txn.Get(key)
		if err != nil {
			return fmt.Errorf("storage: sweep %s: the entry of a record that is spared: %w", s.Dates.Collection.NS, err)
		}
		s.Txn.Set(key, value)
	}
	return nil
}

// leavesNothing says whether all records there are lie in what is swept. It looks at the keys on either side: a counter alone
// is not enough to delete everything by.
func (s *Sweep) leavesNothing() (bool, error) {
	var rest walk.Keys
	if err := rest.OpenRange(s.Dates.Ctx, s.Dates.Snapshot, layout.RecordKey(nil, s.Dates.Collection.ID, nil)); err != nil {
		return false, err
	}
	defer rest.Close()
	parts := slices.Clone(s.Parts)
	slices.SortFunc(parts, func(a, b Part) int { return bytes.Compare(a.low, b.low) })
	for rest.Next() {
		if len(parts) == 0 || bytes.Compare(rest.Key(), parts[0].low) < 0 {
			return false, nil
		}
		rest.Seek(parts[0].high)
		parts = parts[1:]
	}
	return true, rest.Err()
}

// deleteAll empties the collection and its indexes: nothing is left to be vacuumed.
func (s *Sweep) deleteAll() error {
	start := layout.RecordKey(nil, s.Dates.Collection.ID, nil)
	s.Txn.DeleteRange(start, layout.After(start))
	for _, ix := range s.Tables {
		start := layout.TableKey(nil, ix.Definition)
		s.Txn.DeleteRange(start, layout.After(start))
		key := layout.CounterKey(nil, layout.OfIndex, ix.ID, layout.CountSurplus)
		surplus, err := s.Txn.Counter(key)
		if err != nil {
			return fmt.Errorf("storage: sweep %s: %w", s.Dates.Collection.NS, err)
		}
		s.Txn.Add(key, -surplus)
	}
	s.Txn.Delete(layout.TombstonesKey(s.Dates.Collection.ID))
	s.Tombstones = nil
	return nil
}
