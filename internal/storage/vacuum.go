package storage

import (
	"github.com/ebbdb/ebb/internal/storage/expiry"
	"github.com/ebbdb/ebb/internal/storage/layout"
	"github.com/ebbdb/ebb/internal/storage/meaning"
)

// Dead is how many records have been swept whose entries in the index on _id are still stored, and how many documents there
// are.
func (r *Reader) Dead() (dead, documents int64, err error) {
	documents, _, err = r.storedCounts()
	if err != nil || r.c.id == nil || !r.MayHaveTombstones() {
		return 0, documents, err
	}
	entries, err := r.Entries(r.c.id.Definition)
	return entries - documents, documents, err
}

// Vacuum removes at most limit dead entries of the collection's indexes, and goes on where at stands. With stretches, which only one may
// beside whom nobody writes, it deletes a stretch as a whole, as the engine likes it best; otherwise one by one, of which up to few are
// little. more is false when a round has left none: then it deletes what tells of them, too.
func (w *Writer) Vacuum(at *expiry.Round, limit int, stretches bool, few int64) (removed int, more bool, err error) {
	dead, err := w.swept()
	if err != nil {
		return 0, false, err
	}
	slice := expiry.Vacuum{Ctx: w.view.ctx, Snapshot: w.view.reader, Tables: w.c.layouts(), Tombstones: dead, Txn: (*vacuumed)(w),
		Few: few}
	switch can := w.txn.store.can; {
	case stretches && can.RangeRewrites:
		slice.By = expiry.Stretches
	case stretches && can.RangeDeletes:
		slice.By = expiry.Runs
	}
	removed, more, err = slice.Remove(at, limit)
	if err == nil && !more {
		w.txn.kv.Delete(layout.TombstonesKey(w.c.ID))
		w.change.Tombstones = meaning.TombstonesDeleted
	}
	return removed, more, err
}

// vacuumed is a Writer as expiry.Vacuum knows it.
type vacuumed Writer

func (w *vacuumed) Claim(key []byte) { (*Writer)(w).claim(key) }

func (w *vacuumed) IsSpared(key []byte) bool { return w.txn.store.intents.Spare(key, w.c.ID) }

func (w *vacuumed) Set(key, value []byte) { w.txn.kv.Set(key, value) }

func (w *vacuumed) Delete(key []byte) { w.txn.kv.Delete(key) }

func (w *vacuumed) DeleteRange(low, high []byte) { w.txn.kv.DeleteRange(low, high) }

func (w *vacuumed) Removed(index uint32, n int) { w.entries.Removed(index, n) }
