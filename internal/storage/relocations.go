package storage

import (
	"errors"
	"fmt"
	"sync/atomic"

	"github.com/ebbdb/ebb/internal/index"
	"github.com/ebbdb/ebb/internal/kv"
	"github.com/ebbdb/ebb/internal/storage/layout"
	"github.com/ebbdb/ebb/internal/storage/meaning"
)

// relocations is when records of a collection have moved last, forward in its order and back. A scan that is taken up again in
// another view learns from it whether some that it had still to come to may lie behind it now.
type relocations struct {
	under [2]atomic.Int64  // commits on their way
	last  [2]atomic.Uint64 // the number of the last commit that has moved any, among those of all collections
}

// noteRelocation takes note of a record that the transaction moves.
func (w *Writer) noteRelocation(old, now RecordID) {
	if string(now) < string(old) {
		w.change.Moved[meaning.Back] = true
	} else {
		w.change.Moved[meaning.Forward] = true
	}
}

// begin is called before what a Commit has moved can be seen where it is now, end after.
func (m *relocations) begin(moved [2]bool) {
	for way, any := range moved {
		if any {
			m.under[way].Add(1)
		}
	}
}

func (m *relocations) end(moved [2]bool, all *atomic.Uint64) {
	for way, any := range moved {
		if any {
			raise(&m.last[way], all.Add(1))
			m.under[way].Add(-1)
		}
	}
}

func raise(to *atomic.Uint64, n uint64) {
	for old := to.Load(); old < n && !to.CompareAndSwap(old, n); old = to.Load() {
	}
}

// Relocations is how many commits had moved records, of all collections, before the view began.
func (v *View) Relocations() uint64 { return v.relocations }

// MovedSince says whether records of the collection may have moved that way since a view with so many moves began.
func (r *Reader) MovedSince(relocations uint64, back bool) bool {
	way := meaning.Forward
	if back {
		way = meaning.Back
	}
	m := &r.c.state.relocations
	return m.under[way].Load() > 0 || m.last[way].Load() > relocations // in this order: what has ended meanwhile has its number
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
	var room layout.IDRoom
	entry, err := e.ReadEntry(at, value, &room)
	return entry.RecordID.Clone(), err
}
