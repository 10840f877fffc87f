package storage

import (
	"github.com/ebbdb/ebb/internal/storage/expiryorder"
)

// MayHaveTombstones says whether there may be tombstones in r's view.
// MayHaveTombstones says whether sweeps that the view knows may have left dead entries.
func (r *Reader) MayHaveTombstones() bool { return r.c.state.tombstones.MayBeIn(r.view.swept) }

// swept are the tombstones as r's view has them.
func (r *Reader) swept() (expiryorder.Tombstones, error) {
	if r.tombstonesRead || !r.MayHaveTombstones() {
		return r.tombstones, nil
	}
	var err error
	r.tombstones, err = expiryorder.ReadTombstones(r.view.reader, r.c.ID)
	r.tombstonesRead = err == nil
	return r.tombstones, err
}

// isDeadNow is isDead as things are, where a sweep may have come between the transaction's beginning and what it writes.
func (w *Writer) isDeadNow(id RecordID) (bool, error) {
	if w.txn.statements == nil || !id.IsOrdered() || w.c.state.lastSweep.Load() <= w.txn.swept {
		return false, nil
	}
	r := w.txn.look()
	if r == nil {
		return false, w.txn.statements.failed
	}
	ts, err := expiryorder.ReadTombstones(r, w.c.ID)
	return err == nil && ts.Cover(id), err
}

// isDead says whether the record with the id has been swept, so that an entry with it means nothing.
func (r *Reader) isDead(id RecordID) (bool, error) {
	if !id.IsOrdered() {
		return false, nil
	}
	ms, err := r.swept()
	return err == nil && ms.Cover(id), err
}
