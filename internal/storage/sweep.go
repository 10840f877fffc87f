package storage

import (
	"context"
	"math"
	"time"

	"github.com/ebbdb/ebb/internal/clock"
	"github.com/ebbdb/ebb/internal/kv"
	"github.com/ebbdb/ebb/internal/storage/expiry"
	"github.com/ebbdb/ebb/internal/storage/expiryorder"
	"github.com/ebbdb/ebb/internal/ttl/policy"
)

// Swept is what a sweep has deleted. Busy says that it has not because writers did not end soon: another may. Uncounted says
// that CountOrder has to come first.
type Swept struct {
	Documents, Bytes, Keys int64
	Busy, Uncounted        bool
}

// Few says whether so many records are better deleted one by one than with Sweep.
func (s *Store) Few(records int) bool { return int64(records) < s.fewSwept }

const (
	// fewSwept is how many records are better deleted one by one: a range deletion is something that every reader has to
	// look at until it is compacted away.
	fewSwept = 256
	// mostCounted is how many records are counted while the lock is held: of a slot from each of its ends, or all that there
	// are where the histogram is not known.
	mostCounted = 1 << 17
	// maxSweepWait is how long a sweep waits for the writers of a collection, which holds up those that come after it.
	maxSweepWait = 20 * time.Millisecond
)

// Sweep deletes all records at once that have expired at now by the rule that orders their collection: one range deletion of
// the records and one of the rule's index entries, however many there are. The entries of other indexes stay and are known
// to be dead by a tombstone (expiryorder.Tombstones); Vacuum removes them. ok is false when that cannot be done, or is not worth it, and the
// records are to be deleted one by one: the rule is not the one that orders, some records are not in order yet, or in their grace, an
// index is being built, writers do not end soon, or there are few.
//
// It holds the collection's lock exclusively, for the time of a commit: so no transaction is under way that has read what is
// deleted, and every sequence that was given out is of a record that is there or is not.
func (s *Store) Sweep(ctx context.Context, collection uint32, rule *policy.Rule, now int64) (done Swept, ok bool, err error) {
	c := s.current.Load().collections[collection]
	if !s.sweepsBy(c, rule) || c.Options.TTLPaused || !s.worthSweeping(c.order, rule, now) {
		return Swept{}, false, nil
	}
	if spared, err := s.sparedOf(ctx, c, now); spared || err != nil {
		return Swept{}, false, err
	}
	if counted, err := s.countSoon(ctx, c); !counted || err != nil {
		return Swept{Uncounted: err == nil}, false, err
	}
	if !s.worthSweeping(c.order, rule, now) {
		return Swept{}, false, nil
	}
	if locked, err := s.lockToSweep(ctx, c); !locked {
		return Swept{Busy: err == nil}, false, err
	}
	defer c.state.lock.release(true)
	if spared, err := s.sparedOf(ctx, c, now); spared || err != nil { // what was written meanwhile
		return Swept{}, false, err
	}
	return s.sweepLocked(ctx, c, rule, now)
}

// sparedOf says whether anything is due by the rule that orders, and in its grace: then what is due is not one stretch.
func (s *Store) sparedOf(ctx context.Context, c *collection, now int64) (bool, error) {
	rule := c.order.Rule
	if !s.inGrace(rule, now) {
		return false, nil
	}
	v, err := s.ViewAt(ctx, now)
	if err != nil {
		return false, err
	}
	defer v.Close()
	n, err := v.read(c).Dates().Count(rule, rule.Grace.At, 1)
	return n > 0, err
}

// sweepsBy says whether the rule is the one that orders the collection, and the engine can delete ranges. Where it cannot, what is
// due is deleted one by one.
func (s *Store) sweepsBy(c *collection, rule *policy.Rule) bool {
	switch {
	case c == nil || c.order == nil || !s.can.RangeDeletes:
		return false
	case c.order.Clustered: // its ids may come again, so that entries of indexes would not tell that they are dead
		return rule.Index == nil && len(c.indexes) == 0
	}
	return rule.Index != nil && c.order.Rule.Index.ID == rule.Index.ID
}

// lockToSweep takes the collection's lock, unless that takes long or c is not how the collection is any more.
func (s *Store) lockToSweep(ctx context.Context, c *collection) (locked bool, err error) {
	soon, cancel := clock.WithTimeout(ctx, s.options.Clock, maxSweepWait)
	defer cancel()
	if err := c.state.lock.acquire(soon, true); err != nil {
		if ctx.Err() != nil {
			return false, context.Cause(ctx)
		}
		return false, nil
	}
	if s.current.Load().collections[c.ID] != c {
		c.state.lock.release(true)
		return false, nil
	}
	return true, nil
}

// worthSweeping says whether more than a few records may be due. Nobody knows before they have been counted.
func (s *Store) worthSweeping(o *expiryorder.Order, rule *policy.Rule, now int64) bool {
	if !o.Histogram.IsKnown() {
		return true
	}
	n := int64(0)
	for _, cut := range expiryorder.Cuts(rule, now) {
		whole, last, _ := o.Histogram.UpTo(cut.Span, cut.Date)
		n += whole.Documents + last.Documents
	}
	return n >= s.fewSwept
}

// countLocked is countOrder for one who holds the collection's lock exclusively, and counting. It does not count where little
// is due, nor so many that all who use the collection would wait for long: most often somebody has counted them before.
func (s *Store) countLocked(ctx context.Context, c *collection, rule *policy.Rule, now int64) (counted bool, err error) {
	if c.order.Histogram.IsKnown() {
		return true, nil
	}
	v, err := s.View(ctx)
	if err != nil {
		return false, err
	}
	defer v.Close()
	r := v.read(c)
	if documents, _, err := r.storedCounts(); err != nil || documents > int64(s.mostCounted) {
		return false, err
	}
	if due, err := r.Dates().Count(rule, now, s.fewSwept); err != nil || due < s.fewSwept {
		return false, err
	}
	c.state.counting.close()
	c.order.Histogram.Reset()
	if _, err := r.histogramSome(nil, math.MaxInt); err != nil {
		return false, err
	}
	return c.order.Histogram.Done(), nil
}

// sweepLocked is Sweep for one who holds the collection's lock exclusively.
func (s *Store) sweepLocked(ctx context.Context, c *collection, rule *policy.Rule, now int64) (done Swept, ok bool, err error) {
	if !s.sweepsBy(c, rule) || !c.order.Histogram.IsKnown() || len(c.state.building()) > 0 {
		return Swept{}, false, nil
	}
	t, err := s.BeginAt(ctx, now)
	if err != nil {
		return Swept{}, false, err
	}
	defer t.Rollback()
	r := t.view.read(c)
	if inOrder, err := r.findInOrder(); !inOrder || err != nil {
		return Swept{}, false, err
	}
	w := &expiry.Sweep{Txn: t.kv, Dates: r.Dates(), Tables: c.layouts(), MostCounted: s.mostCounted, Logger: s.options.Logger,
		LastNumber: func() (uint64, error) { return c.state.sequence.lastGiven(s.engine) }}
	if err := w.Plan(now); err != nil {
		return Swept{}, false, err
	}
	if len(w.Parts) == 0 || w.Documents < s.fewSwept {
		return Swept{}, false, nil
	}
	if err := w.Delete(); err != nil {
		return Swept{}, false, err
	}
	t.meaning.add(meaningOf(w))
	if err := t.Commit(ctx, kv.Buffered); err != nil {
		return Swept{}, false, err
	}
	return Swept{Documents: w.Documents, Bytes: w.Bytes, Keys: w.Entries}, true, nil
}

// meaningOf is what a sweep means.
func meaningOf(w *expiry.Sweep) *Change {
	c := newChange(w.Dates.Collection.ID)
	c.tombstones = tombstonesSet
	if len(w.Tombstones) == 0 {
		c.tombstones = tombstonesDeleted
	}
	for _, p := range w.Parts {
		c.sweeps = append(c.sweeps, sweptSpan{p.Cut.Span, p.Cut.Date, p.Amount})
	}
	return &c
}

// findInOrder says whether all records lie in the order of expiry. Once they do they stay so.
func (r *Reader) findInOrder() (bool, error) {
	if r.c.order.Clustered || r.c.isInOrder() {
		return true, nil
	}
	unclustered, err := r.Unclustered()
	if err == nil && !unclustered {
		r.c.state.lastSweep.Store(r.view.store.sweeps.Add(1)) // a view that began before may still see others
		r.c.state.inOrder.Store(r.c.order.Number)
	}
	return !unclustered, err
}

// layouts are the collection's indexes that keep entries, as packages below know them.
func (c *collection) layouts() []expiry.Table {
	tables := make([]expiry.Table, len(c.indexes))
	for i, ix := range c.indexes {
		tables[i] = expiry.Table{Entries: ix.Entries, IsMultikey: ix.multikey.any()}
	}
	return tables
}
