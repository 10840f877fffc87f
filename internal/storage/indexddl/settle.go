package indexddl

import (
	"github.com/ebbdb/ebb/internal/kv"
	"github.com/ebbdb/ebb/internal/mongoerr"
	"github.com/ebbdb/ebb/internal/storage"
	"github.com/ebbdb/ebb/internal/storage/build"
	"github.com/ebbdb/ebb/internal/storage/layout"
)

// settle brings the tables up to date while the lock is held exclusively, and decides what was left open.
func (b *builder) settle(c storage.Collection) error {
	for {
		closed := b.Generation
		if b.Generation++; b.Generation == layout.SkippedGeneration {
			return build.Aborted("documents expire without end")
		}
		if _, err := b.work.CatchUp(b.ddl.engine, closed, directly); err != nil {
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
func (b *builder) clearHidden(c storage.Collection) (cleared bool, err error) {
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
func (b *builder) removeHidden(c storage.Collection, ids []layout.RecordID) (cleared bool, err error) {
	txn, w, err := c.Begin(b.ctx, b.ddl.store.Now())
	if err != nil {
		return false, err
	}
	defer txn.Rollback()
	unhidden := w.Unhidden()
	for _, id := range ids {
		rec, there, err := unhidden.Get(id)
		if err != nil {
			return false, err
		}
		if there && w.IsHidden(&rec) {
			if held := c.Held(); held != "" && !b.how.Force {
				return false, mongoerr.New(mongoerr.IllegalOperation, "expiry is held (%s), and documents of %s that have expired and are hidden are in the "+
					"way of an index: force: true deletes them", held, c.NS)
			}
			if err := w.DeleteHidden(rec.Clone()); err != nil {
				return false, err
			}
			cleared = true
		}
	}
	return cleared, txn.Commit(b.ctx, kv.Buffered)
}
