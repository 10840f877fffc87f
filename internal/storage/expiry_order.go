package storage

import (
	"bytes"
	"context"
	"encoding/binary"
	"math"
	"slices"

	"github.com/ebbdb/ebb/internal/bson"
	"github.com/ebbdb/ebb/internal/catalog"
	"github.com/ebbdb/ebb/internal/index"
	"github.com/ebbdb/ebb/internal/keystring"
	"github.com/ebbdb/ebb/internal/kv"
	"github.com/ebbdb/ebb/internal/ttl/policy"
)

// A plain collection with a TTL index keeps its records in the order in which they expire:
//
//	id = 0x80 | number of the order, 4 | span, 1 | date, 8 | sequence, 8
//
// # Why
//
// What has expired is then one stretch of keys, and is deleted as that, however many records it holds; and from an id alone,
// in an index entry too, one sees whether its record is gone (sweep.go).
//
// # How
//
// The date is that from which the TTL counts, so that another TTL moves nothing; where documents carry a ttl of their own it
// is the deadline, in a span of its own; what never expires lies in the last span. The sequence is the number that a record
// gets when it is inserted, with its highest bit set. A record whose date changes moves, and keeps it. The ids of a plain
// collection, eight bytes below 0x80, lie before all others: a collection that gets its first TTL index has both kinds until
// Recluster has moved all. The number of the order changes when the records are to lie by the dates of another index; those
// with an older number are moved too.
//
// # Invariants
//
//   - What is written is placed by the collection's order at once; so what lies elsewhere only becomes less.
//   - Numbers of orders grow: what is moved lands behind what is still to be moved.
//   - A sequence is used by one record, ever: it is reserved on disk before the first record that has it (sequence).
//   - A record is never placed where a sweep has been with a sequence that was given out before that sweep.
const (
	orderedMark   = 0x80
	orderedLength = 1 + 4 + 1 + 8 + 8
	// placeLength is the length of what stands before the sequence.
	placeLength = orderedLength - sequenceLength
	// tailLength is what an index entry with the sequence in its key keeps of the id in its value: all else but the mark.
	tailLength = placeLength - 1
	// onNever is the span of records that do not expire, beside onDefault and onOverride.
	onNever = 3
	// orderedBit is set in the sequence of an ordered id.
	orderedBit = 1 << 63
)

// isOrdered says whether id has the form above. No other id begins so: a sequence is smaller, and so are the tags of key
// strings.
func (id RecordID) isOrdered() bool { return len(id) == orderedLength && id[0] == orderedMark }

// sequence is the number of a plain or ordered id.
func (id RecordID) sequence() uint64 {
	return binary.BigEndian.Uint64(id[len(id)-sequenceLength:]) &^ orderedBit
}

// place is an ordered id without its sequence.
func (id RecordID) place() []byte { return id[:placeLength] }

func (id RecordID) order() uint32 { return binary.BigEndian.Uint32(id[1:]) }

func (id RecordID) span() byte { return id[5] }

func (id RecordID) date() int64 { return readMillis(id[6:]) }

// Identity is what stays the same of an id when its record moves, as bytes; of other ids it is the id.
func (id RecordID) Identity() []byte {
	if !id.isOrdered() {
		return id
	}
	return binary.BigEndian.AppendUint64(nil, id.sequence())
}

// isSame says whether two ids are those of one record, now and before it moved.
func (id RecordID) isSame(o RecordID) bool {
	return string(id) == string(o) || string(id.Identity()) == string(o.Identity())
}

func orderedID(place []byte, sequence uint64) RecordID {
	id := append(make(RecordID, 0, orderedLength), place...)
	return binary.BigEndian.AppendUint64(id, sequence|orderedBit)
}

// expiryOrder is how the records of a collection lie: as above, or in a collection that is clustered by a date in _id, by that.
type expiryOrder struct {
	number    uint32
	rule      *policy.Rule
	histogram *dateHistogram
	clustered bool
}

// of is where in the order a record lies; ok is false when it has no deadline, or lies elsewhere.
func (o *expiryOrder) of(id RecordID) (span byte, date int64, ok bool) {
	switch {
	case o == nil:
		return 0, 0, false
	case o.clustered:
		date, ok = keystring.Date(id)
		return onDefault, date, ok && id[0] < inverted && date >= 0
	case !o.has(id) || id.span() == onNever:
		return 0, 0, false
	}
	return id.span(), id.date(), true
}

// inverted is from where on the first byte of a key string is that of a descending value, which no _id is.
const inverted = 0x80

// datedKey is where the records of a date begin, within a span.
func (c *collection) datedKey(span byte, date int64) []byte {
	if c.order.clustered {
		return keystring.AppendDate(recordKey(nil, c.ID, nil), max(date, 0), false)
	}
	return c.order.appendDate(recordKey(nil, c.ID, nil), span, date)
}

// relocates says whether records have other ids when their dates change.
func (c *collection) relocates() bool { return c.order != nil && !c.order.clustered }

// appendOrder appends what all ids of an order begin with.
func appendOrder(dst []byte, number uint32) []byte {
	return binary.BigEndian.AppendUint32(append(dst, orderedMark), number)
}

// appendPlace appends the place of a document.
func (o *expiryOrder) appendPlace(dst []byte, doc bson.Doc, modified int64) []byte {
	span, date := o.where(doc, modified)
	return o.appendDate(dst, span, date)
}

func (o *expiryOrder) appendDate(dst []byte, span byte, date int64) []byte {
	return appendMillis(append(appendOrder(dst, o.number), span), date)
}

func (o *expiryOrder) where(doc bson.Doc, modified int64) (span byte, date int64) {
	if o.rule.Kind != policy.Modified {
		if date, ok := o.rule.Date(doc); ok {
			return onDefault, date
		}
		return onNever, math.MaxInt64
	}
	switch override, seconds := policy.Override(doc); override {
	case policy.Forever:
		return onNever, math.MaxInt64
	case policy.Valid:
		own := policy.Rule{Kind: policy.Modified, Seconds: int64(seconds)}
		return onOverride, own.After(modified)
	}
	return onDefault, modified
}

// isBy says whether records lie by what the TTL index counts from; it may be about to be built anew.
func (o *expiryOrder) isBy(d *index.Definition) bool {
	return o != nil && !o.clustered && o.rule.Index.Name == d.Name
}

// implies says whether id says what an entry in the TTL index on _ts would, which is why there is none.
func (o *expiryOrder) implies(d *index.Definition, id RecordID) bool {
	return o.isBy(d) && o.has(id) && id.span() != onNever
}

// has says whether id was made under this order.
func (o *expiryOrder) has(id RecordID) bool {
	return o != nil && id.isOrdered() && id.order() == o.number
}

// orderBounds are the keys of the records that lie in the order.
func (c *collection) orderBounds() (low, high []byte) {
	if c.order.clustered {
		return c.datedKey(onDefault, 0), After(c.datedKey(onDefault, math.MaxInt64))
	}
	low = appendOrder(recordKey(nil, c.ID, nil), c.order.number)
	return low, After(low)
}

// replace is where a record goes whose document changes: where it is, unless that is no longer its place.
func (w *Writer) replace(old RecordID, doc bson.Doc) (RecordID, error) {
	switch {
	case w.c.relocates():
		return w.reorder(old, doc, w.view.now)
	case w.c.IsTimeSeries() && !w.c.inPlace(old, doc):
		return w.placeInSeries(doc)
	}
	return old, nil
}

// reorder is the id of a record in the collection's order.
func (w *Writer) reorder(old RecordID, doc bson.Doc, modified int64) (RecordID, error) {
	var room [placeLength]byte
	place := w.c.order.appendPlace(room[:0], doc, modified)
	if old.isOrdered() && string(old.place()) == string(place) {
		return old, nil
	}
	if !old.isOrdered() {
		if err := w.c.state.sequence.secure(w.txn.store.engine); err != nil {
			return nil, err
		}
	}
	id := orderedID(place, old.sequence())
	dead, err := w.isDead(id)
	if err != nil || !dead {
		return id, err
	}
	n, err := w.c.nextSequence(w.txn.store.engine)
	return orderedID(place, n), err
}

// histogramRecord takes account of a record that comes to where it lies, or goes from there.
func (w *Writer) histogramRecord(id RecordID, documents, bytes int64) {
	if span, date, ok := w.c.order.of(id); ok {
		if documents > 0 {
			w.c.order.histogram.lower(span, date)
		}
		w.histogramChanges = append(w.histogramChanges, histogramChange{span, date, documents, bytes})
	}
}

// chooseOrder gives a collection its order: the one it has as long as its index is there, otherwise by its first TTL index.
func (c *change) chooseOrder(coll *catalog.Collection) (*catalog.Collection, error) {
	next, err := c.orderOf(coll)
	if err != nil || next == coll.Order || next != nil && coll.Order != nil && *next == *coll.Order {
		return coll, err
	}
	return coll.WithOrder(next), nil
}

func (c *change) orderOf(coll *catalog.Collection) (*catalog.Order, error) {
	if coll.IsView() || coll.IsClustered() || coll.IsTimeSeries() || coll.Options.Capped {
		return nil, nil
	}
	if o := c.keptOrder(coll); o != nil {
		return o, nil
	}
	for _, d := range coll.Indexes {
		if _, ok := policy.ForIndex(d); ok && d.Built() {
			number, err := c.newIndexID()
			return &catalog.Order{Number: number, Index: d.ID}, err
		}
	}
	return nil, nil
}

// keptOrder is the collection's order when the dates of the same index still decide: it may have been built anew.
func (c *change) keptOrder(coll *catalog.Collection) *catalog.Order {
	old := c.catalog.ByID(coll.ID)
	if coll.Order == nil || old == nil {
		return nil
	}
	before := old.IndexByID(coll.Order.Index)
	if before == nil {
		before = coll.IndexByID(coll.Order.Index)
	}
	i := slices.IndexFunc(coll.Indexes, func(d *index.Definition) bool {
		_, ok := policy.ForIndex(d)
		return ok && before != nil && (d.ID == coll.Order.Index || hasSameDates(d, before))
	})
	if i < 0 {
		return nil
	}
	return &catalog.Order{Number: coll.Order.Number, Index: coll.Indexes[i].ID}
}

// hasSameDates says whether two TTL indexes find the same dates in all documents.
func hasSameDates(a, b *index.Definition) bool {
	return a.Name == b.Name && a.Kind == b.Kind && a.Fields[0].Path == b.Fields[0].Path &&
		string(a.Spec.Lookup("partialFilterExpression").Data) == string(b.Spec.Lookup("partialFilterExpression").Data)
}

// makeExpiryOrder is the order of a collection in memory.
func makeExpiryOrder(c, old *collection, made bool) *expiryOrder {
	o := c.newExpiryOrder()
	switch {
	case o == nil:
	case old != nil && old.order != nil && old.order.number == o.number:
		o.histogram = old.order.histogram
	default: // of a new collection, and under a new number, nothing is there yet
		o.histogram = newDateHistogram(made && old == nil || old != nil && !o.clustered)
	}
	return o
}

func (c *collection) newExpiryOrder() *expiryOrder {
	if own, ok := c.rules.Own(); ok && own.Kind == policy.Clustered {
		return &expiryOrder{rule: own, clustered: true}
	}
	if c.Order == nil {
		return nil
	}
	rule, ok := c.rules.ForIndexID(c.Order.Index)
	if !ok {
		return nil
	}
	return &expiryOrder{number: c.Order.Number, rule: rule}
}

// upgradeOrder gives collections their order that were stored when there was none.
func (s *Store) upgradeOrder(ctx context.Context) error {
	return s.change(ctx, func(ch *change) error {
		for _, entry := range ch.catalog.All() {
			if err := ch.putIfReordered(entry); err != nil {
				return err
			}
		}
		return nil
	})
}

func (c *change) putIfReordered(entry *catalog.Collection) error {
	next, err := c.orderOf(entry)
	if err != nil || next == nil && entry.Order == nil || next != nil && entry.Order != nil && *next == *entry.Order {
		return err
	}
	return c.put(entry.WithOrder(next))
}

// nextSequence is a number that no record of the collection has had.
func (c *collection) nextSequence(e kv.Engine) (uint64, error) {
	return c.state.sequence.next(e, c.order != nil)
}

// Relocates says whether records of the collection may move while they stay what they are: now, or once it has a TTL index.
func (r *Reader) Relocates() bool { return r.c.id != nil && !r.c.Options.Capped }

// Order is the number of the order that the collection's records lie in, or are brought into; 0 for none.
func (r *Reader) Order() uint32 {
	if !r.c.relocates() {
		return 0
	}
	return r.c.order.number
}

// LastSequence stands behind all records with the same key in an index, where those of the collection may move.
func LastSequence() RecordID { return bytes.Repeat([]byte{0xFF}, sequenceLength+1) }

// Sequence is the number of a record, which it keeps when it moves. ok is false for ids of collections whose records do not.
func (id RecordID) Sequence() (n uint64, ok bool) {
	if !id.isOrdered() && len(id) != sequenceLength {
		return 0, false
	}
	return id.sequence(), true
}

// Again is a record that was read before, as it is now: under another id when it has moved.
func (r *Reader) Again(rec Record) (now Record, ok bool, err error) {
	now, ok, err = r.Get(rec.ID)
	if ok || err != nil || !r.c.relocates() {
		return now, ok, err
	}
	now, ok, err = r.GetByID(rec.Doc.Lookup("_id"))
	if !ok || err != nil || !now.ID.isSame(rec.ID) {
		return Record{}, false, err
	}
	return now, true, nil
}
