package storage

import (
	"github.com/ebbdb/ebb/internal/kv"
	"github.com/ebbdb/ebb/internal/mongoerr"
	"github.com/ebbdb/ebb/internal/storage/layout"
	"github.com/ebbdb/ebb/internal/storage/meaning"
)

// settle brings the tables up to date while the lock is held exclusively, and decides what was left open.
func (b *Build) settle(c *collection) error {
	for {
		closed := b.generation
		if b.generation++; b.generation == layout.SkippedGeneration {
			return aborted("documents expire without end")
		}
		if _, err := b.work.CatchUp(b.store.engine, closed, directly); err != nil {
			return err
		}
		cleared, err := b.clearHidden(c)
		if err != nil {
			return err
		}
		if !cleared {
			return b.work.Decide()
		}
	}
}

// clearHidden deletes the expired, hidden ones among the records that are in the way.
func (b *Build) clearHidden(c *collection) (cleared bool, err error) {
	if b.how.Keep {
		return false, nil
	}
	open, err := b.work.InTheWay()
	if err != nil || len(open) == 0 {
		return false, err
	}
	return b.removeHidden(c, open)
}

// removeHidden deletes those of the records that are hidden. While expiry is held it fails when there are any.
func (b *Build) removeHidden(c *collection, ids []RecordID) (cleared bool, err error) {
	txn, err := b.store.Begin(b.ctx)
	if err != nil {
		return false, err
	}
	defer txn.Rollback()
	w := txn.writer(c)
	for _, id := range ids {
		rec, there, err := w.stored(id)
		if err != nil {
			return false, err
		}
		if there && w.hidden(rec) {
			if held := b.store.held(c); held != "" && !b.how.Force {
				return false, mongoerr.New(mongoerr.IllegalOperation, "expiry is held (%s), and documents of %s that have expired and are hidden are in the "+
					"way of an index: force: true deletes them", held, c.NS)
			}
			if err := w.remove(meaning.DocumentExpired, rec.Clone()); err != nil {
				return false, err
			}
			cleared = true
		}
	}
	return cleared, txn.Commit(b.ctx, kv.Buffered)
}
