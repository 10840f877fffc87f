package storage

import (
	"github.com/ebbdb/ebb/internal/storage/expiry"
	"github.com/ebbdb/ebb/internal/storage/expiryorder"
	"github.com/ebbdb/ebb/internal/storage/layout"
	"github.com/ebbdb/ebb/internal/storage/meaning"
	"github.com/ebbdb/ebb/internal/yield"
)

// Sweep deletes all records at once that have expired at the transaction's now by the rule that orders the collection, and notes what
// that leaves behind. Where each document is told of it deletes some, and More says that there may be others. ok is false when it does not: some records are not in order yet, there are few, or too many tombstones. The
// transaction is the collection's own (Collection.Begin), and the histogram of its order is known.
func (w *Writer) Sweep(limits expiry.Limits) (done *expiry.Sweep, ok bool, err error) {
	if inOrder, err := w.findInOrder(); !inOrder || err != nil {
		return nil, false, err
	}
	s := w.txn.store
	done = &expiry.Sweep{Txn: w.txn.kv, Dates: w.Dates(), Tables: w.c.layouts(), MostCounted: limits.MostCounted, Logger: s.options.Logger,
		LastNumber: w.c.state.own.LastNumber}
	w.findWritten(done, limits)
	told := w.log != nil && !w.c.Options.ExpirationEvents.SumUp()
	if told {
		done.Tell = w.tellSome(limits)
	}
	if err := done.Plan(w.view.now); err != nil {
		return nil, false, err
	}
	if len(done.Parts) == 0 || done.Documents < limits.Few && !done.More && longestTrail(w.c.order.Histogram, done.Parts) < limits.Trail {
		return nil, false, nil
	}
	if err := done.Delete(); err != nil {
		return nil, false, err
	}
	w.waitForSpared(done)
	noteSweep(&w.change, done)
	if !told {
		w.summary.Add(w.c.order.Rule, done.Documents)
	}
	return done, true, nil
}

// longestTrail is that of the stretches that a sweep is about to delete.
func longestTrail(h *expiryorder.Histogram, parts []expiry.Part) (trail int64) {
	for _, p := range parts {
		trail = max(trail, h.Trail(p.Cut.Span))
	}
	return trail
}

// findWritten tells a sweep what open transactions have written.
func (w *Writer) findWritten(done *expiry.Sweep, limits expiry.Limits) {
	done.MostSpared, done.MostSparedBytes = limits.MostSpared, limits.MostSparedBytes
	if !w.c.state.lock.IsLasting() {
		return
	}
	records := layout.RecordKey(nil, w.c.ID, nil)
	done.Written, done.IsWritten = w.txn.store.intents.Between(records, layout.After(records)), true
}

// waitForSpared has the store say when what a sweep has spared may be looked at again.
func (w *Writer) waitForSpared(done *expiry.Sweep) {
	var keys []string
	for _, p := range done.Parts {
		for _, r := range p.Spared {
			keys = append(keys, r.Key)
		}
	}
	if len(keys) > 0 && !w.txn.store.intents.SpareAll(keys, w.c.ID) {
		w.txn.store.options.OnReleased(w.c.ID) // a transaction has ended meanwhile
	}
}

// toldAtOnce is how many records are told of between two turns for others.
const toldAtOnce = 256

// tellSome tells of each record that a sweep deletes, until those are enough for one commit.
func (w *Writer) tellSome(limits expiry.Limits) func(Record) (bool, error) {
	documents, bytes := 0, 0
	return func(rec Record) (more bool, err error) {
		w.logRemoval(meaning.DocumentExpired, rec)
		documents++
		bytes += len(rec.Doc)
		if documents%toldAtOnce == 0 {
			yield.Now()
		}
		return documents < limits.MostTold && bytes < limits.MostToldBytes && w.log.Size() < limits.MostToldBytes, nil
	}
}

// noteSweep takes note of what a sweep means.
func noteSweep(c *meaning.Change, w *expiry.Sweep) {
	c.Tombstones = meaning.TombstonesSet
	if len(w.Tombstones) == 0 {
		c.Tombstones = meaning.TombstonesDeleted
	}
	for _, p := range w.Parts {
		c.Sweeps = append(c.Sweeps, p.Meaning())
	}
}

// findInOrder says whether all records lie in the order of expiry. Once they do they stay so.
func (r *Reader) findInOrder() (bool, error) {
	if r.c.order.Clustered || r.c.state.inOrder.Load() == r.c.order.Number {
		return true, nil
	}
	unclustered, err := r.Unclustered()
	if err == nil && !unclustered {
		number := r.view.store.sweeps.Add(1) // a view that began before may still see others
		r.c.state.lastSweep.Store(number)
		r.c.state.inOrderSince.Store(number)
		r.c.state.inOrder.Store(r.c.order.Number)
	}
	return !unclustered, err
}

// Unclustered says whether any record lies where the collection's order does not want it.
func (r *Reader) Unclustered() (bool, error) {
	if !r.c.order.Relocates() {
		return false, nil
	}
	found, _, err := expiry.Unclustered(r.Dates(), nil, 1)
	return len(found) > 0, err
}

// Recluster puts a record, unchanged, where the collection's order wants it.
func (w *Writer) Recluster(old Record) error {
	var room [layout.PlaceLength]byte
	id, err := w.reorder(old.ID, w.c.order.AppendPlace(room[:0], old.Doc, old.Modified))
	if err != nil {
		return err
	}
	if err := w.entries.Change(old.Doc, old.Doc, true); err != nil {
		return err
	}
	w.write(meaning.DocumentMoved, old, Record{ID: id, Modified: old.Modified, Doc: old.Doc})
	return nil
}

// layouts are the collection's indexes that keep entries, as packages below know them.
func (c *collection) layouts() []expiry.Table {
	tables := make([]expiry.Table, len(c.indexes))
	for i, ix := range c.indexes {
		tables[i] = expiry.Table{Entries: ix.Entries, IsMultikey: ix.Multikey.Any()}
	}
	return tables
}
