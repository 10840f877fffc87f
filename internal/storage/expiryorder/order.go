// Package expiryorder is how the records of a collection lie in the order in which they expire: where a record belongs, how many
// lie how far (Histogram), which were deleted and have left entries behind (Tombstones), and which are hidden (HiddenBounds). It
// is data alone: it knows no store, no transaction and no clock.
//
// A plain collection with a TTL index keeps its records so: layout.RecordID tells how their ids are made.
//
// # Why
//
// What has expired is then one stretch of keys, and is deleted as that, however many records it holds; and from an id alone,
// in an index entry too, one sees whether its record is gone.
//
// # How
//
// The date is that from which the TTL counts, so that another TTL moves nothing; where documents carry a ttl of their own it
// is the deadline, in a span of its own; what never expires lies in another. A record whose date changes moves; under a TTL
// index on _ts, where each change of a document is one of its date, the places of changed ones are coarse (cell.go). A collection that gets its first TTL index has ids of both kinds, plain and ordered, until all were moved. The number of the
// order changes when the records are to lie by the dates of another index; those with an older number are moved too.
//
// # Invariants
//
//   - What is written is placed by the collection's order at once; so what lies elsewhere only becomes less.
//   - Numbers of orders grow: what is moved lands behind what is still to be moved.
//   - A sequence is used by one record, ever: it is reserved on disk before the first record that has it.
//   - A record is never placed where a sweep has been with a sequence that was given out before that sweep.
package expiryorder

import (
	"math"

	"github.com/ebbdb/ebb/internal/bson"
	"github.com/ebbdb/ebb/internal/index"
	"github.com/ebbdb/ebb/internal/keystring"
	"github.com/ebbdb/ebb/internal/storage/layout"
	"github.com/ebbdb/ebb/internal/ttl/policy"
)

// Order is how the records of a collection lie: as above, or in a collection that is clustered by a date in _id, by that. A nil
// Order is of a collection that has none.
type Order struct {
	Collection uint32
	Number     uint32
	Rule       *policy.Rule
	Histogram  *Histogram
	Clustered  bool
	// Cell is the width of the widest cell in which the order has ever placed a document on the default, in milliseconds; 0 when
	// all places are exact.
	Cell int64
}

// Of is where in the order a record lies; ok is false when it has no deadline, or lies elsewhere.
func (o *Order) Of(id layout.RecordID) (span byte, date int64, ok bool) {
	switch {
	case o == nil:
		return 0, 0, false
	case o.Clustered:
		date, ok = keystring.Date(id)
		return layout.OnDefault, date, ok && id[0] < inverted && date >= 0
	case !o.Has(id) || id.Span() == layout.OnNever:
		return 0, 0, false
	}
	return id.Span(), id.Date(), true
}

// inverted is from where on the first byte of a key string is that of a descending value, which no _id is.
const inverted = 0x80

// Has says whether id was made under this order.
func (o *Order) Has(id layout.RecordID) bool {
	return o != nil && id.IsOrdered() && id.Order() == o.Number
}

// Relocates says whether records have other ids when their dates change.
func (o *Order) Relocates() bool { return o != nil && !o.Clustered }

// AppendPlace appends the exact place of a document.
func (o *Order) AppendPlace(dst []byte, doc bson.Doc, modified int64) []byte {
	at := o.where(doc, modified)
	return layout.AppendPlace(dst, o.Number, at.span, at.date)
}

// where is the span and date of a document, and the TTL that it expires by.
type where struct {
	span    byte
	date    int64
	seconds int64
}

func (o *Order) where(doc bson.Doc, modified int64) where {
	never := where{layout.OnNever, math.MaxInt64, 0}
	if o.Rule.Kind != policy.Modified {
		if date, ok := o.Rule.Date(doc); ok {
			return where{layout.OnDefault, date, o.Rule.Seconds}
		}
		return never
	}
	switch override, seconds := policy.Override(doc); override {
	case policy.Forever:
		return never
	case policy.Valid:
		return where{layout.OnOverride, overrideDate(modified, seconds), int64(seconds)}
	}
	return where{layout.OnDefault, modified, o.Rule.Seconds}
}

// overrideDate is the deadline that a document's ttl makes.
func overrideDate(modified int64, seconds int32) int64 {
	own := policy.Rule{Kind: policy.Modified, Seconds: int64(seconds)}
	return own.After(modified)
}

// DatedKey is where the records of a date begin, within a span.
func (o *Order) DatedKey(span byte, date int64) []byte {
	start := layout.RecordKey(nil, o.Collection, nil)
	if o.Clustered {
		return keystring.AppendDate(start, max(date, 0), false)
	}
	return layout.AppendPlace(start, o.Number, span, date)
}

// Bounds are the keys of the records that lie in the order.
func (o *Order) Bounds() (low, high []byte) {
	if o.Clustered {
		return o.DatedKey(layout.OnDefault, 0), layout.After(o.DatedKey(layout.OnDefault, math.MaxInt64))
	}
	low = layout.AppendOrder(layout.RecordKey(nil, o.Collection, nil), o.Number)
	return low, layout.After(low)
}

// IsBy says whether records lie by what the TTL index counts from; it may be about to be built anew.
func (o *Order) IsBy(d *index.Definition) bool {
	return o != nil && !o.Clustered && o.Rule.Index.Name == d.Name
}

// Implies says whether id says what an entry in the TTL index on _ts would, which is why there is none.
func (o *Order) Implies(d *index.Definition, id layout.RecordID) bool {
	return o.IsBy(d) && o.Has(id) && id.Span() != layout.OnNever
}

// AppendDeadline appends the key of a record's entry in a TTL index on _ts; nil when it never expires by it, whatever
// the index's default is, and when the order says the same.
func (o *Order) AppendDeadline(dst []byte, d *index.Definition, rec layout.Record) []byte {
	if o.IsBy(d) && o.Has(rec.ID) {
		return nil
	}
	switch override, seconds := policy.Override(rec.Doc); override {
	case policy.Forever:
		return nil
	case policy.Valid:
		own := policy.Rule{Kind: policy.Modified, Index: d, Seconds: int64(seconds)}
		return layout.DeadlineKey(dst, d, layout.OnOverride, own.After(rec.Modified), rec.ID)
	}
	return layout.DeadlineKey(dst, d, layout.OnDefault, rec.Modified, rec.ID)
}

// Cut is the last date of a span that has expired.
type Cut struct {
	Span byte
	Date int64
}

// Cuts are the dates up to which all records have expired at now by the rule, by span. In coarse spans some behind them have, too.
func Cuts(rule *policy.Rule, now int64) []Cut {
	onDefault := rule.Cut(now)
	switch {
	case rule.Kind != policy.Modified:
		return []Cut{{layout.OnDefault, onDefault}}
	case rule.Seconds < 0:
		return []Cut{{layout.OnOverride, now}, {layout.CoarseOverride, now}}
	}
	return []Cut{{layout.OnOverride, now}, {layout.CoarseOverride, now}, {layout.OnDefault, onDefault}, {layout.CoarseDefault, onDefault}}
}

// HiddenBounds is up to which dates all records are hidden, by span; the least there is where none are. The zero value hides
// nothing.
type HiddenBounds [layout.Spans]int64

// HiddenBounds is what the order's rule hides at now.
func (o *Order) HiddenBounds(now int64) (b HiddenBounds) {
	for span := range b {
		b[span] = math.MinInt64
	}
	for _, cut := range Cuts(o.Rule, now) {
		b[cut.Span] = cut.Date
	}
	return b
}

// IsBehind says whether the record with the id is hidden because the rule that orders says so.
func (o *Order) IsBehind(b *HiddenBounds, id layout.RecordID) bool {
	if *b == (HiddenBounds{}) {
		return false
	}
	span, date, ok := o.Of(id)
	return ok && date <= b[span]
}

// IsAhead says whether the id of a record that is not behind the bounds tells that the rule does not hide it. Of one in a coarse
// span whose place is near the bound it does not.
func (o *Order) IsAhead(b *HiddenBounds, id layout.RecordID) bool {
	return o.Has(id) && (!id.IsCoarse() || o.Before(id.Span(), id.Date()) >= b[id.Span()])
}
