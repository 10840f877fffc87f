package storage

import (
	"errors"
	"fmt"

	"github.com/ebbdb/ebb/internal/index"
	"github.com/ebbdb/ebb/internal/kv"
	"github.com/ebbdb/ebb/internal/storage/layout"
	"github.com/ebbdb/ebb/internal/storage/meaning"
)

// noteRelocation takes note of a record that the transaction moves.
func (w *Writer) noteRelocation(old, now RecordID) {
	if string(now) < string(old) {
		w.change.Moved[meaning.Back] = true
	} else {
		w.change.Moved[meaning.Forward] = true
	}
}

// Relocations is how many commits had moved records, of all collections, before the view began.
func (v *View) Relocations() uint64 { return v.relocations }

// MovedSince says whether records of the collection may have moved that way since a view with so many moves began. In all views of one
// Past they lie where they lay.
func (r *Reader) MovedSince(relocations uint64, back bool) bool {
	if r.view.past != nil {
		return false
	}
	way := meaning.Forward
	if back {
		way = meaning.Back
	}
	return r.c.state.relocations.MaySince(relocations, way)
}

// GetByEntry is Get for a record that an index of its own values has led to, perhaps in an earlier view: where it has moved since
// it is found by its entry, if that is still there.
func (r *Reader) GetByEntry(d *index.Definition, key []byte, id RecordID) (rec Record, ok bool, err error) {
	rec, ok, err = r.Get(id)
	n, numbered := id.Sequence()
	ix := r.c.index(d.ID)
	if ok || err != nil || !numbered || ix == nil || !r.Relocates() {
		return rec, ok, err
	}
	ordered := make([]byte, layout.PlaceLength)
	ordered[0] = layout.OrderedMark
	for _, was := range [...]RecordID{layout.OrderedID(ordered, n), layout.SequenceID(n)} {
		now, err := r.entryOf(ix.Entries, key, was)
		switch {
		case err != nil:
			return Record{}, false, err
		case now != nil:
			return r.Get(now)
		}
	}
	return rec, false, nil
}

// entryOf is the id in an index's entry, which a record has under key with what an id of the form of was leaves of it there; nil
// when there is none.
func (r *Reader) entryOf(e layout.Entries, key []byte, was RecordID) (RecordID, error) {
	at := e.EntryKey(nil, key, was)
	value, err := r.view.reader.Get(at)
	switch {
	case errors.Is(err, kv.ErrNotFound):
		return nil, nil
	case err != nil:
		return nil, fmt.Errorf("storage: look up an index entry of %s: %w", r.c.NS, err)
	}
	var entry IndexEntry
	var room layout.IDRoom
	err = e.ReadEntry(&entry, at, value, &room)
	return entry.RecordID.Clone(), err
}
