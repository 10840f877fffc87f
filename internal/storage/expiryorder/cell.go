package expiryorder

import (
	"math"

	"github.com/ebbdb/ebb/internal/bson"
	"github.com/ebbdb/ebb/internal/storage/layout"
	"github.com/ebbdb/ebb/internal/ttl/policy"
)

// Under a TTL index on _ts each change of a document moves its date. A record that moved each time would cost an entry of each index
// each time. So a changed document is placed in a coarse span, at the end of the cell of dates that its own falls into, and stays
// there as long as its date lies less than a cell before that. The exact date is in the record's header.
//
//   - Before(place) < date <= place. So what is placed up to the cut has expired, and of what lies behind it only what lies less
//     than a cell behind may have.
//   - Cells may have another width each time: the TTL may change. Order.Cell is the widest; it never falls under one number of
//     the order. Documents with a ttl of their own have cells of up to MaxCell.
//   - What is inserted, and what is moved unchanged, has an exact place: where documents are not changed nothing is read but keys.

const (
	// MaxCell is the width of the widest cell in milliseconds.
	MaxCell = 60_000
	// cellsPerTTL is how many cells there are at least in the time that the TTL takes.
	cellsPerTTL = 64
	// widthsPerCell is how many times as wide as a document's own cell the widest of its span may be. Who asks what is due reads
	// the records that lie less than the widest cell behind the cut. So these are at most widthsPerCell/cellsPerTTL of those that
	// are changed evenly over time. A document with a narrower cell has an exact place.
	widthsPerCell = 4
)

// CellFor is the width of the cells for a TTL, negative for none.
func CellFor(seconds int64) int64 {
	if seconds < 0 || seconds >= MaxCell/1000*cellsPerTTL {
		return MaxCell
	}
	return seconds * 1000 / cellsPerTTL
}

// CellOf is the width of the widest cell in a coarse span; 0 when there is nothing in it.
func (o *Order) CellOf(span byte) int64 {
	if o.Cell == 0 || span == layout.CoarseDefault {
		return o.Cell
	}
	return MaxCell
}

// Before is a date that all records at a place of a coarse span are dated after.
func (o *Order) Before(span byte, place int64) int64 {
	cell := o.CellOf(span)
	if place < math.MinInt64+cell {
		return math.MinInt64
	}
	return place - cell
}

// AppendUpdated appends the place of a document that was changed, whose record is at old: coarse where that is possible.
func (o *Order) AppendUpdated(dst []byte, old layout.RecordID, doc bson.Doc, modified int64) []byte {
	at := o.where(doc, modified)
	if o.Rule.Kind == policy.Modified && o.Cell > 0 && at.span != layout.OnNever {
		o.coarsen(&at, old)
	}
	return layout.AppendPlace(dst, o.Number, at.span, at.date)
}

// coarsen makes a place coarse, unless the record lies at it already.
func (o *Order) coarsen(at *where, old layout.RecordID) {
	span := layout.Coarse(at.span)
	cell, widest := CellFor(at.seconds), o.CellOf(span)
	cell = min(cell, widest) // the rule may be newer than the order
	switch {
	case cell <= 1 || cell < widest/widthsPerCell || at.date > math.MaxInt64-cell:
	case o.Has(old) && old.Span() == at.span && old.Date() == at.date:
	case o.Has(old) && old.Span() == span && at.date <= old.Date() && old.Date() < at.date+cell:
		at.span, at.date = span, old.Date()
	default:
		at.span, at.date = span, cellEnd(at.date, cell)
	}
}

// cellEnd is the end of the cell that a date falls into; cells are counted from 1970.
func cellEnd(date, cell int64) int64 {
	into := date % cell
	if into < 0 {
		into += cell
	}
	if into == 0 {
		return date
	}
	return date + cell - into
}

// IsPlaceOf says whether a record with an id under the order may lie where it does.
func (o *Order) IsPlaceOf(rec layout.Record) bool {
	at := o.where(rec.Doc, rec.Modified)
	switch span, place := rec.ID.Span(), rec.ID.Date(); {
	case span == at.span:
		return place == at.date
	case at.span == layout.OnNever || span != layout.Coarse(at.span):
		return false
	default:
		return at.date <= place && o.Before(span, place) < at.date
	}
}

// DateOf is the exact date of a record in a coarse span.
func DateOf(rec layout.Record) int64 {
	if rec.ID.Span() == layout.CoarseDefault {
		return rec.Modified
	}
	_, seconds := policy.Override(rec.Doc)
	return overrideDate(rec.Modified, seconds)
}
