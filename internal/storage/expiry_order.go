package storage

import (
	"github.com/ebbdb/ebb/internal/bson"
	"github.com/ebbdb/ebb/internal/storage/layout"
)

// replace is where a record goes whose document changes: where it is, unless that is no longer its place.
func (w *Writer) replace(old RecordID, doc bson.Doc) (RecordID, error) {
	switch {
	case w.c.order.Relocates():
		var room [layout.PlaceLength]byte
		return w.reorder(old, w.c.order.AppendUpdated(room[:0], old, doc, w.modified))
	case w.c.IsTimeSeries() && !w.c.placement.IsInPlace(Record{ID: old, Doc: doc}):
		return w.placeInSeries(doc)
	}
	return old, nil
}

// reorder is the id of a record at a place in the collection's order.
func (w *Writer) reorder(old RecordID, place []byte) (RecordID, error) {
	if old.IsOrdered() && string(old.Place()) == string(place) {
		return old, nil
	}
	if !old.IsOrdered() {
		if err := w.c.state.own.SecureNumbers(); err != nil {
			return nil, err
		}
	}
	id := layout.OrderedID(place, old.Number())
	dead, err := w.isDead(id)
	if err == nil && !dead {
		dead, err = w.isDeadNow(id)
	}
	if err != nil || !dead {
		return id, err
	}
	n, err := w.nextSequence()
	return layout.OrderedID(place, n), err
}

// nextSequence is a number that no record of the collection has had.
func (w *Writer) nextSequence() (n uint64, err error) {
	n, err = w.c.state.own.NextNumber(w.c.order != nil)
	w.change.LastSequence = max(w.change.LastSequence, n)
	return n, err
}

// Relocates says whether records of the collection may move while they stay what they are: now, or once it has a TTL index.
func (r *Reader) Relocates() bool { return r.c.id != nil && !r.c.Options.Capped }

// Order is the number of the order that the collection's records lie in, or are brought into; 0 for none.
func (r *Reader) Order() uint32 {
	if !r.c.order.Relocates() {
		return 0
	}
	return r.c.order.Number
}

// Again is a record that was read before, as it is now: under another id when it has moved.
func (r *Reader) Again(rec Record) (now Record, ok bool, err error) {
	now, ok, err = r.Get(rec.ID)
	if ok || err != nil || !r.c.order.Relocates() {
		return now, ok, err
	}
	now, ok, err = r.GetByID(rec.Doc.Lookup("_id"))
	if !ok || err != nil || !now.ID.IsSame(rec.ID) {
		return Record{}, false, err
	}
	return now, true, nil
}
