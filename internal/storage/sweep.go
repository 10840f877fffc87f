package storage

import (
	"bytes"
	"context"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/ebbdb/ebb/internal/clock"
	"github.com/ebbdb/ebb/internal/kv"
	"github.com/ebbdb/ebb/internal/storage/due"
	"github.com/ebbdb/ebb/internal/storage/expiryorder"
	"github.com/ebbdb/ebb/internal/storage/layout"
	"github.com/ebbdb/ebb/internal/storage/walk"
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
	if !c.sweeps(rule) || c.Options.TTLPaused || !s.worthSweeping(c.order, rule, now) {
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

// sweeps says whether the rule is the one that orders the collection.
func (c *collection) sweeps(rule *policy.Rule) bool {
	switch {
	case c == nil || c.order == nil:
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

// sweeping is a sweep under way.
type sweeping struct {
	store      *Store
	c          *collection
	rule       *policy.Rule
	kv         kv.Txn
	view       *View
	tombstones expiryorder.Tombstones
	done       Swept
	parts      []sweptPart
}

// sweptPart is what is swept of one span.
type sweptPart struct {
	cut       expiryorder.Cut
	floor     int64              // no record is dated before it
	low, high []byte             // of the records
	slot      expiryorder.Slot   // the last, which the cut may lie in the middle of
	within    expiryorder.Amount // what of it is swept
	all       expiryorder.Amount
}

// sweepBefore does at once what can be done so of what its caller will do one by one, holding the collection's lock exclusively.
func (s *Store) sweepBefore(ctx context.Context, c *collection, rule *policy.Rule, now int64) (deleted int64, err error) {
	if !c.sweeps(rule) || !c.state.counting.TryLock() { // who counts may wait for the lock
		return 0, nil
	}
	defer c.state.counting.Unlock()
	if counted, err := s.countLocked(ctx, c, rule, now); !counted || err != nil {
		return 0, err
	}
	done, _, err := s.sweepLocked(ctx, c, rule, now)
	return done.Documents, err
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

// sweepPatiently is Sweep for one who waits for writers as long as it takes, and counts beside them before that.
func (s *Store) sweepPatiently(ctx context.Context, c *collection, rule *policy.Rule, now int64) (deleted int64, err error) {
	if !c.sweeps(rule) || len(c.state.building()) > 0 {
		return 0, nil
	}
	if err := s.countOrder(ctx, c); err != nil {
		return 0, err
	}
	if err := c.state.lock.acquire(ctx, true); err != nil {
		return 0, err
	}
	defer c.state.lock.release(true)
	if s.current.Load().collections[c.ID] != c {
		return 0, nil
	}
	done, _, err := s.sweepLocked(ctx, c, rule, now)
	return done.Documents, err
}

// sweepLocked is Sweep for one who holds the collection's lock exclusively.
func (s *Store) sweepLocked(ctx context.Context, c *collection, rule *policy.Rule, now int64) (done Swept, ok bool, err error) {
	if !c.sweeps(rule) || !c.order.Histogram.IsKnown() || len(c.state.building()) > 0 {
		return Swept{}, false, nil
	}
	t, err := s.BeginAt(ctx, now)
	if err != nil {
		return Swept{}, false, err
	}
	defer t.Rollback()
	w := &sweeping{store: s, c: c, rule: c.order.Rule, kv: t.kv, view: t.view}
	if ok, err = w.plan(now); !ok || err != nil {
		return Swept{}, false, err
	}
	if err := w.delete(); err != nil {
		return Swept{}, false, err
	}
	change := w.change()
	t.meaning.add(&change)
	if err := t.Commit(ctx, kv.Buffered); err != nil {
		return Swept{}, false, err
	}
	return w.done, true, nil
}

// change is what the sweep means.
func (w *sweeping) change() Change {
	c := newChange(w.c.ID)
	c.tombstones = tombstonesSet
	if len(w.tombstones) == 0 {
		c.tombstones = tombstonesDeleted
	}
	for _, p := range w.parts {
		c.sweeps = append(c.sweeps, sweptSpan{p.cut.Span, p.cut.Date, p.all})
	}
	return c
}

// plan finds out what is to be deleted and how much that is; ok is false when it is to be done one by one.
func (w *sweeping) plan(now int64) (ok bool, err error) {
	if inOrder, err := w.inOrder(); !inOrder || err != nil {
		return false, err
	}
	if w.tombstones, err = readTombstones(w.kv, w.c.ID); err != nil || len(w.tombstones) >= expiryorder.MaxTombstones {
		return false, err
	}
	for _, cut := range expiryorder.Cuts(w.rule, now) {
		p, err := w.part(cut)
		if err != nil {
			return false, err
		}
		if p.all.Documents > 0 {
			w.parts = append(w.parts, p)
			w.done.Documents += p.all.Documents
			w.done.Bytes += p.all.Bytes
		}
	}
	return w.done.Documents >= w.store.fewSwept, nil
}

// inOrder says whether all records are. Once they are they stay so.
func (w *sweeping) inOrder() (bool, error) {
	if w.c.order.Clustered || w.c.state.inOrder.Load() == w.c.order.Number {
		return true, nil
	}
	unclustered, err := w.view.read(w.c).Unclustered()
	if err == nil && !unclustered {
		w.c.state.lastSweep.Store(w.store.sweeps.Add(1)) // a view that began before may still see others
		w.c.state.inOrder.Store(w.c.order.Number)
	}
	return !unclustered, err
}

func (w *sweeping) key(span byte, date int64) []byte {
	return w.c.order.DatedKey(span, date)
}

// part finds what is due in a span.
func (w *sweeping) part(c expiryorder.Cut) (p sweptPart, err error) {
	whole, last, at := w.c.order.Histogram.UpTo(c.Span, c.Date)
	floor := w.c.order.Histogram.Floor(c.Span)
	p = sweptPart{cut: c, floor: floor, slot: at, low: w.key(c.Span, floor), high: layout.After(w.key(c.Span, c.Date))}
	if last != (expiryorder.Amount{}) && floor <= c.Date {
		var counted bool
		if p.within, counted, err = w.within(p, last); err != nil {
			return p, err
		}
		if !counted { // what is in the slot stays
			first, _ := w.c.order.Histogram.SlotBounds(at)
			p.cut.Date = first - 1
			p.high = layout.After(w.key(c.Span, first-1))
		}
	}
	p.all = expiryorder.Amount{Documents: whole.Documents + p.within.Documents, Bytes: whole.Bytes + p.within.Bytes}
	return p, nil
}

// within is how much of a slot lies before the cut. Records are counted from both of its ends, whichever comes to the cut
// first: at most as many as are deleted, and most often none is behind it. counted is false when those are too many to hold
// the lock for.
func (w *sweeping) within(p sweptPart, total expiryorder.Amount) (before expiryorder.Amount, counted bool, err error) {
	from, to := w.c.order.Histogram.SlotBounds(p.slot)
	var front, back racer
	defer front.close()
	defer back.close()
	if err := front.open(w.view.ctx, w.view.reader, w.key(p.cut.Span, max(from, p.floor)), p.high); err != nil {
		return expiryorder.Amount{}, false, err
	}
	if err := back.open(w.view.ctx, w.view.reader, p.high, layout.After(w.key(p.cut.Span, to))); err != nil {
		return expiryorder.Amount{}, false, err
	}
	for range w.store.mostCounted {
		if ended, err := back.step(); ended || err != nil {
			return expiryorder.Amount{Documents: total.Documents - back.sum.Documents, Bytes: total.Bytes - back.sum.Bytes}, true, err
		}
		if ended, err := front.step(); ended || err != nil {
			return front.sum, true, err
		}
	}
	return expiryorder.Amount{}, false, nil
}

// racer is one of two counts that race for their end.
type racer struct {
	walk walk.Keys
	sum  expiryorder.Amount
}

func (r *racer) open(ctx context.Context, from kv.Reader, low, high []byte) error {
	return r.walk.Open(ctx, from, kv.IterOptions{Lower: low, Upper: high}, false, nil)
}

func (r *racer) step() (ended bool, err error) {
	if !r.walk.Next() {
		return true, r.walk.Err()
	}
	n, err := r.walk.DocumentBytes()
	r.sum.Documents++
	r.sum.Bytes += n
	return false, err
}

func (r *racer) close() { _ = r.walk.Close() }

// delete puts it all into the transaction.
func (w *sweeping) delete() error {
	n := w.done.Documents
	w.kv.Add(layout.CounterKey(nil, layout.OfCollection, w.c.ID, layout.CountDocuments), -n)
	w.kv.Add(layout.CounterKey(nil, layout.OfCollection, w.c.ID, layout.CountBytes), -w.done.Bytes)
	w.kv.Add(layout.CounterKey(nil, layout.OfCollection, w.c.ID, layout.CountExpired), n)
	w.done.Keys = n * int64(len(w.c.indexes))
	left, err := w.kv.Counter(layout.CounterKey(nil, layout.OfCollection, w.c.ID, layout.CountDocuments))
	if err != nil {
		return err
	}
	if left == 0 {
		empty, err := w.leavesNothing()
		if err != nil {
			return err
		}
		if empty {
			return w.deleteAll()
		}
		w.store.options.Logger.Error("A collection's counter of documents is too low: validate tells more", "namespace", w.c.NS.String())
	}
	if w.c.order.Clustered {
		w.kv.DeleteRange(w.parts[0].low, w.parts[0].high)
		return nil
	}
	last, err := w.c.state.sequence.lastGiven(w.store.engine)
	if err != nil {
		return err
	}
	for i := range w.parts {
		p := &w.parts[i]
		w.kv.DeleteRange(p.low, p.high)
		w.tombstones = w.tombstones.With(expiryorder.Tombstone{Order: w.c.order.Number, Span: p.cut.Span, Date: p.cut.Date, Sequence: last})
	}
	for _, ix := range w.c.indexes {
		if err := w.deleteEntries(ix, n); err != nil {
			return err
		}
	}
	w.kv.Set(layout.TombstonesKey(w.c.ID), w.tombstones.Encode())
	return nil
}

// deleteEntries deletes the entries of the rule's own index, where that takes them all; those of others stay for Vacuum, as so
// many more than there are documents.
func (w *sweeping) deleteEntries(ix *tableIndex, n int64) error {
	if ix.ID != w.rule.Index.ID || !due.IsEmptied(ix.Definition, ix.multikey.any(), w.tombstones, w.c.order.Number) {
		w.kv.Add(layout.CounterKey(nil, layout.OfIndex, ix.ID, layout.CountSurplus), n)
		return nil
	}
	d := w.view.read(w.c).Dates()
	for _, p := range w.parts {
		low, high := d.FieldBounds(w.rule, p.floor, p.cut.Date)
		w.kv.DeleteRange(low, high)
	}
	return nil
}

// leavesNothing says whether all records there are lie in what is swept. It looks at the keys on either side: a counter alone
// is not enough to delete everything by.
func (w *sweeping) leavesNothing() (bool, error) {
	var rest walk.Keys
	if err := rest.OpenRange(w.view.ctx, w.view.reader, layout.RecordKey(nil, w.c.ID, nil)); err != nil {
		return false, err
	}
	defer rest.Close()
	parts := slices.Clone(w.parts)
	slices.SortFunc(parts, func(a, b sweptPart) int { return bytes.Compare(a.low, b.low) })
	for rest.Next() {
		if len(parts) == 0 || bytes.Compare(rest.Key(), parts[0].low) < 0 {
			return false, nil
		}
		rest.Seek(parts[0].high)
		parts = parts[1:]
	}
	return true, rest.Err()
}

// deleteAll empties the collection and its indexes: nothing is left to be cleaned.
func (w *sweeping) deleteAll() error {
	start := layout.RecordKey(nil, w.c.ID, nil)
	w.kv.DeleteRange(start, layout.After(start))
	for _, ix := range w.c.indexes {
		start := layout.TableKey(nil, ix.Definition)
		w.kv.DeleteRange(start, layout.After(start))
		key := layout.CounterKey(nil, layout.OfIndex, ix.ID, layout.CountSurplus)
		surplus, err := w.kv.Counter(key)
		if err != nil {
			return fmt.Errorf("storage: sweep %s: %w", w.c.NS, err)
		}
		w.kv.Add(key, -surplus)
	}
	w.kv.Delete(layout.TombstonesKey(w.c.ID))
	w.tombstones = nil
	return nil
}
