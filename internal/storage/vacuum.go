package storage

import (
	"context"
	"sync"

	"github.com/ebbdb/ebb/internal/kv"
	"github.com/ebbdb/ebb/internal/storage/expiry"
	"github.com/ebbdb/ebb/internal/storage/layout"
)

// vacuuming is how far the removal of a collection's dead entries has come. A round goes through all of its indexes.
type vacuuming struct {
	mu         sync.Mutex // held by who cleans
	round      expiry.Round
	compaction *indexCompaction // or nil
	writes     int64            // commits to the collection when it was cleaned last
	contended  bool             // an index compaction was given up in this round
}

// Dead is how many records have been swept whose entries in the index on _id are still stored, and how many documents there
// are.
func (r *Reader) Dead() (dead, documents int64, err error) {
	documents, _, err = r.storedCounts()
	if err != nil || r.c.id == nil || !r.mayHaveTombstones() {
		return 0, documents, err
	}
	entries, err := r.Entries(r.c.id.Definition)
	return entries - documents, documents, err
}

// manyDead says whether a round over the collection begins with stretches that are written anew: entries deleted one by one
// make Pebble compact them away.
func (s *Store) manyDead(ctx context.Context, c *collection) (bool, error) {
	v, err := s.View(ctx)
	if err != nil {
		return false, err
	}
	defer v.Close()
	dead, documents, err := v.read(c).Dead()
	return dead >= s.fewSwept && dead*expiry.DenseShare >= dead+documents, err
}

// Vacuum removes at most limit dead entries of a collection's indexes, and goes on where it stopped the last time. more is
// false when a round through all indexes has left nothing.
//
// Where few entries are dead they are deleted one by one, beside writers. Where many are, a stretch is deleted as a whole and
// the living are written again: a long one while nobody writes to the collection (indexCompaction), or else a short one, for which
// the lock is held exclusively while limit entries are read.
func (s *Store) Vacuum(ctx context.Context, collection uint32, limit int) (removed int, more bool, err error) {
	c := s.current.Load().collections[collection]
	if c == nil || !c.state.marked.isSet() {
		return 0, false, nil
	}
	at := &c.state.vacuuming
	at.mu.Lock()
	defer at.mu.Unlock()
	if at.round.Begun == nil {
		if at.round.Dense, err = s.manyDead(ctx, c); err != nil {
			return 0, false, err
		}
	}
	if at.round.Dense && s.can.RangeDeletes {
		if removed, ok, err := s.rewrite(ctx, c, limit); ok || err != nil {
			return removed, true, err
		}
		if locked, err := s.lockToSweep(ctx, c); err != nil {
			return 0, false, err
		} else if locked {
			defer c.state.lock.release(true)
			return s.vacuumDense(ctx, c, limit)
		}
	}
	var next expiry.Round
	err = s.Write(ctx, c.NS, WriteOptions{Durability: kv.Buffered}, func(w *Writer) (err error) {
		removed, more = 0, false
		if w.c.ID != collection {
			return nil
		}
		next = at.round.Clone()
		removed, more, err = w.vacuum(&next, limit, false)
		return err
	})
	if err == nil {
		at.proceed(next, c.state.writes.Load())
	}
	return removed, more, err
}

// proceed takes over how far a transaction has come, which is one of so many commits to the collection.
func (c *vacuuming) proceed(next expiry.Round, commits int64) {
	if next.Begun == nil { // the round has ended
		c.contended = false
	}
	c.round, c.writes = next, commits
}

// vacuumDense is Vacuum for one who holds the collection's lock exclusively.
func (s *Store) vacuumDense(ctx context.Context, c *collection, limit int) (removed int, more bool, err error) {
	t, err := s.Begin(ctx)
	if err != nil {
		return 0, false, err
	}
	defer t.Rollback()
	w := t.writer(c)
	next := c.state.vacuuming.round.Clone()
	if removed, more, err = w.vacuum(&next, limit, true); err != nil {
		return 0, false, err
	}
	if err := t.Commit(ctx, kv.Buffered); err != nil {
		return 0, false, err
	}
	c.state.vacuuming.proceed(next, c.state.writes.Load())
	return removed, more, nil
}

// vacuum removes dead entries, as stretches or one by one, and what tells of them when a round has left none.
func (w *Writer) vacuum(at *expiry.Round, limit int, stretches bool) (removed int, more bool, err error) {
	dead, err := w.swept()
	if err != nil {
		return 0, false, err
	}
	slice := expiry.Vacuum{Ctx: w.view.ctx, Snapshot: w.view.reader, Tables: w.c.layouts(), Tombstones: dead, Txn: (*vacuumed)(w),
		Stretches: stretches, Few: w.txn.store.fewSwept}
	removed, more, err = slice.Remove(at, limit)
	if err == nil && !more {
		w.txn.kv.Delete(layout.TombstonesKey(w.c.ID))
		w.change.tombstones = tombstonesDeleted
	}
	return removed, more, err
}

// vacuumed is a Writer as expiry.Vacuum knows it.
type vacuumed Writer

func (w *vacuumed) Claim(key []byte) { (*Writer)(w).claim(key) }

func (w *vacuumed) Set(key, value []byte) { w.txn.kv.Set(key, value) }

func (w *vacuumed) Delete(key []byte) { w.txn.kv.Delete(key) }

func (w *vacuumed) DeleteRange(low, high []byte) { w.txn.kv.DeleteRange(low, high) }

func (w *vacuumed) Removed(index uint32, n int) {
	for i := range w.tables {
		if t := &w.tables[i]; !t.building() && t.ID == index {
			t.surplus -= int64(n)
		}
	}
}
