package sweeper

import (
	"context"
	"sync"

	"github.com/ebbdb/ebb/internal/kv"
	"github.com/ebbdb/ebb/internal/storage"
	"github.com/ebbdb/ebb/internal/storage/expiry"
)

// vacuuming is how far the removal of a collection's dead entries has come. A round goes through all of its indexes.
type vacuuming struct {
	mu         sync.Mutex // held by who vacuums
	round      expiry.Round
	compaction *indexCompaction // or nil
	writes     int64            // commits to the collection when it was vacuumed last
	contended  bool             // an index compaction was given up in this round
}

// manyDead says whether a round over the collection begins with stretches that are written anew: entries deleted one by one
// make Pebble compact them away.
func (s *Sweeper) manyDead(ctx context.Context, c storage.Collection) (bool, error) {
	v, err := s.store.View(ctx)
	if err != nil {
		return false, err
	}
	defer v.Close()
	dead, documents, err := c.Read(v).Dead()
	return dead >= s.Limits.Few && dead*expiry.DenseShare >= dead+documents, err
}

// Vacuum removes at most limit dead entries of a collection's indexes, and goes on where it stopped the last time. more is
// false when a round through all indexes has left nothing.
//
// more is also false when a round has left only what an open transaction is about to overwrite: storage.Options.OnReleased is told of its end.
//
// Where few entries are dead they are deleted one by one, beside writers. Where many are, a stretch is deleted as a whole and
// the living are written again: a long one while nobody writes to the collection (indexCompaction), or else a short one, for which
// the lock is held exclusively while limit entries are read.
func (s *Sweeper) Vacuum(ctx context.Context, collection uint32, limit int) (removed int, more bool, err error) {
	c, ok := s.store.CollectionByID(collection)
	if !ok || !c.HasTombstones() {
		return 0, false, nil
	}
	at := &s.workOf(collection).vacuuming
	at.mu.Lock()
	defer at.mu.Unlock()
	if at.round.Begun == nil {
		if at.round.Dense, err = s.manyDead(ctx, c); err != nil {
			return 0, false, err
		}
	}
	if at.round.Dense && s.can.RangeDeletes {
		if removed, ok, err := s.rewrite(ctx, c, at, limit); ok || err != nil {
			return removed, true, err
		}
		if unlock, err := s.lockIdle(ctx, c); err != nil {
			return 0, false, err
		} else if unlock != nil {
			defer unlock()
			return s.vacuumDense(ctx, c, at, limit)
		}
	}
	var next expiry.Round
	err = s.store.Write(ctx, c.NS, storage.WriteOptions{Durability: kv.Buffered, PassesOver: true}, func(w *storage.Writer) (err error) {
		removed, more = 0, false
		if w.Catalog().ID != collection {
			return nil
		}
		next = at.round.Clone()
		removed, more, err = w.Vacuum(&next, limit, false, s.Limits.Few)
		return err
	})
	if err == nil {
		at.proceed(next, c.Commits())
	}
	if next.Begun == nil && next.Spared { // whose time comes when a transaction has ended
		more = false
	}
	return removed, more, err
}

// IsCompacting says whether an index of the collection is being compacted.
func (s *Sweeper) IsCompacting(collection uint32) bool {
	w, ok := s.known(collection)
	if !ok {
		return false
	}
	w.vacuuming.mu.Lock()
	defer w.vacuuming.mu.Unlock()
	return w.vacuuming.compaction != nil
}

// proceed takes over how far a transaction has come, which is one of so many commits to the collection.
func (c *vacuuming) proceed(next expiry.Round, commits int64) {
	if next.Begun == nil { // the round has ended
		c.contended = false
	}
	c.round, c.writes = next, commits
}

// vacuumDense is Vacuum for one who holds the collection's lock exclusively.
func (s *Sweeper) vacuumDense(ctx context.Context, c storage.Collection, at *vacuuming, limit int) (removed int, more bool, err error) {
	t, w, err := c.Begin(ctx, s.store.Now())
	if err != nil {
		return 0, false, err
	}
	defer t.Rollback()
	next := at.round.Clone()
	if removed, more, err = w.Vacuum(&next, limit, true, s.Limits.Few); err != nil {
		return 0, false, err
	}
	if err := t.Commit(ctx, kv.Buffered); err != nil {
		return 0, false, err
	}
	at.proceed(next, c.Commits())
	return removed, more, nil
}
