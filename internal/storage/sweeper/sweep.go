package sweeper

import (
	"context"
	"errors"
	"math"
	"slices"
	"time"

	"github.com/ebbdb/ebb/internal/clock"
	"github.com/ebbdb/ebb/internal/kv"
	"github.com/ebbdb/ebb/internal/storage"
	"github.com/ebbdb/ebb/internal/storage/expiry"
	"github.com/ebbdb/ebb/internal/storage/expiryorder"
	"github.com/ebbdb/ebb/internal/ttl/policy"
)

// Swept is what a sweep has deleted. Busy says that it has not because writers did not end soon: another may. Uncounted says
// that CountOrder has to come first. More says that another has to go on behind this one, which has told of each document.
type Swept struct {
	Documents, Bytes, Keys int64
	Busy, Uncounted, More  bool
	// Left is then about how many documents the others have to do with.
	Left int64
}

// Few says whether so many records of a collection that are due by a rule are better deleted one by one than with Sweep: unless many have gone one by one
// since the last sweep (expiry.Limits.Trail).
func (s *Sweeper) Few(collection uint32, rule *policy.Rule, now int64, records int) bool {
	if records == 0 || int64(records) >= s.Limits.Few {
		return records == 0
	}
	c, there := s.store.CollectionByID(collection)
	if !there || c.ExpiryOrder() == nil {
		return true
	}
	order := c.ExpiryOrder()
	isLong := func(cut expiryorder.Cut) bool { return order.Histogram.Trail(cut.Span) >= s.Limits.Trail }
	if !slices.ContainsFunc(expiryorder.Cuts(rule, now), isLong) { // as a rule, and quickly told
		return true
	}
	_, trail := mostDue(order, rule, now)
	return trail < s.Limits.Trail
}

// fewDue says whether what is due by the rule that orders is better deleted one by one; due is how much that may be.
func (s *Sweeper) fewDue(c storage.Collection, rule *policy.Rule, now int64) (due int64, few bool) {
	due, trail := mostDue(c.ExpiryOrder(), rule, now)
	return due, due < s.Limits.Few && trail < s.Limits.Trail
}

// maxSweepWait is how long a sweep waits for the writers of a collection, which holds up those that come after it.
const maxSweepWait = 20 * time.Millisecond

// Sweep deletes all records at once that have expired at now by the rule that orders their collection: one range deletion of
// the records and one of the rule's index entries, however many there are. The entries of other indexes stay and are known
// to be dead by a tombstone (expiryorder.Tombstones); Vacuum removes them. ok is false when that cannot be done, or is not worth it, and the
// records are to be deleted one by one: the rule is not the one that orders, some records are not in order yet, or in their grace, an
// index is being built, writers do not end soon, or there are few.
//
// It holds the collection's lock alone, for the time of a commit: so no transaction of one write is under way that has read what is
// deleted, and every sequence that was given out is of a record that is there or is not, or that an open transaction of several statements
// has written. Those are spared; storage.Options.OnReleased is told when they may be swept.
func (s *Sweeper) Sweep(ctx context.Context, collection uint32, rule *policy.Rule, now int64) (done Swept, ok bool, err error) {
	c, there := s.store.CollectionByID(collection)
	if !there || !s.sweepsBy(c, rule) || c.Options.TTLPaused {
		return Swept{}, false, nil
	}
	if _, few := s.fewDue(c, rule, now); few {
		return Swept{}, false, nil
	}
	if spared, err := s.sparedOf(ctx, c, now); spared || err != nil {
		return Swept{}, false, err
	}
	if counted, err := s.countSoon(ctx, c); !counted || err != nil {
		return Swept{Uncounted: err == nil}, false, err
	}
	due, few := s.fewDue(c, rule, now)
	if few {
		return Swept{}, false, nil
	}
	unlock, err := s.lockSoon(ctx, c, storage.Collection.LockToSweep)
	if unlock == nil {
		return Swept{Busy: err == nil}, false, err
	}
	defer unlock()
	if spared, err := s.sparedOf(ctx, c, now); spared || err != nil { // what was written meanwhile
		return Swept{}, false, err
	}
	if done, ok, err = s.sweepLocked(ctx, c, rule, now); done.More {
		done.Left = max(due-done.Documents, 0)
	}
	return done, ok, err
}

// sparedOf says whether anything is due by the rule that orders, and in its grace: then what is due is not one stretch.
func (s *Sweeper) sparedOf(ctx context.Context, c storage.Collection, now int64) (bool, error) {
	rule := c.ExpiryOrder().Rule
	if rule.Grace.IsZero() {
		return false, nil
	}
	v, err := s.store.ViewAt(ctx, now)
	if err != nil {
		return false, err
	}
	defer v.Close()
	r := c.Read(v)
	if _, inGrace := r.GraceUntil(rule); !inGrace {
		return false, nil
	}
	n, err := r.Dates().Count(rule, rule.Grace.At, 1)
	return n > 0, err
}

// sweepsBy says whether the rule is the one that orders the collection, and the engine can delete ranges. Where it cannot, what is
// due is deleted one by one.
func (s *Sweeper) sweepsBy(c storage.Collection, rule *policy.Rule) bool {
	order := c.ExpiryOrder()
	switch {
	case order == nil || !s.can.RangeDeletes:
		return false
	case order.Clustered: // its ids may come again, so that entries of indexes would not tell that they are dead
		return rule.Index == nil && len(c.Tables()) == 0
	}
	return rule.Index != nil && order.Rule.Index.ID == rule.Index.ID
}

// lockSoon takes the collection's lock in one of its ways. unlock is nil where that takes long, or c is not how the collection is any more.
func (s *Sweeper) lockSoon(ctx context.Context, c storage.Collection, lock func(storage.Collection, context.Context) (func(), error)) (unlock func(), err error) {
	soon, cancel := clock.WithTimeout(ctx, s.clock, maxSweepWait)
	defer cancel()
	if unlock, err = lock(c, soon); err != nil {
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		return nil, nil
	}
	if !c.IsCurrent() {
		unlock()
		return nil, nil
	}
	return unlock, nil
}

// lockIdle takes the collection's lock exclusively, but not where an open transaction has written to it, which may take long: who waits for
// the lock keeps writers waiting.
func (s *Sweeper) lockIdle(ctx context.Context, c storage.Collection) (unlock func(), err error) {
	if c.IsWritten() {
		return nil, nil
	}
	return s.lockSoon(ctx, c, storage.Collection.Lock)
}

// mostDue is how many records may be due: all in the slots of the histogram that hold any, and the longest trail that one of those may have behind
// it. Nobody knows before they have been counted.
func mostDue(o *expiryorder.Order, rule *policy.Rule, now int64) (n, trail int64) {
	if !o.Histogram.IsKnown() {
		return math.MaxInt64, 0
	}
	for _, cut := range expiryorder.Cuts(rule, now) {
		whole, last, _ := o.Histogram.UpTo(cut.Span, cut.Date)
		if there := whole.Documents + last.Documents; there > 0 {
			n += there
			trail = max(trail, o.Histogram.Trail(cut.Span))
		}
	}
	return n, trail
}

// countLocked is countOrder for one who holds the collection's lock exclusively, and counting. It does not count where little
// is due, nor so many that all who use the collection would wait for long: most often somebody has counted them before.
func (s *Sweeper) countLocked(ctx context.Context, c storage.Collection, counting *orderCount, rule *policy.Rule, now int64) (counted bool, err error) {
	histogram := c.ExpiryOrder().Histogram
	if histogram.IsKnown() {
		return true, nil
	}
	v, err := s.store.View(ctx)
	if err != nil {
		return false, err
	}
	defer v.Close()
	r := c.Read(v)
	if documents, err := r.Stored(); err != nil || documents > int64(s.Limits.MostCounted) {
		return false, err
	}
	if due, err := r.Dates().Count(rule, now, s.Limits.Few); err != nil || due < s.Limits.Few {
		return false, err
	}
	counting.close()
	histogram.Reset()
	if _, err := expiry.CountOrder(r.Dates(), nil, math.MaxInt); err != nil {
		return false, err
	}
	return histogram.Done(), nil
}

// sweepLocked is Sweep for one who holds the collection's lock alone.
func (s *Sweeper) sweepLocked(ctx context.Context, c storage.Collection, rule *policy.Rule, now int64) (done Swept, ok bool, err error) {
	if !s.sweepsBy(c, rule) || !c.ExpiryOrder().Histogram.IsKnown() || c.IsBuilding() {
		return Swept{}, false, nil
	}
	t, w, err := c.Begin(ctx, now)
	if err != nil {
		return Swept{}, false, err
	}
	defer t.Rollback()
	swept, ok, err := w.Sweep(s.Limits)
	if !ok || err != nil {
		return Swept{}, false, err
	}
	switch err := t.Commit(ctx, kv.Buffered); {
	case errors.Is(err, kv.ErrTooLarge): // the engine takes no more deleted ranges for now
		return Swept{}, false, nil
	case err != nil:
		return Swept{}, false, err
	}
	return Swept{Documents: swept.Documents, Bytes: swept.Bytes, Keys: swept.Entries, More: swept.More}, true, nil
}

// sweepDue does at once what can be done so of deleting what is due. Beside writers it waits for them as long as it takes, and counts
// beside them before that.
func (s *Sweeper) sweepDue(ctx context.Context, c storage.Collection, rule *policy.Rule, now int64, underLock bool) (deleted int64, err error) {
	if !s.sweepsBy(c, rule) || c.IsBuilding() {
		return 0, nil
	}
	if underLock {
		counting := &s.workOf(c.ID).counting
		if !counting.TryLock() { // who counts may wait for the lock
			return 0, nil
		}
		defer counting.Unlock()
		if counted, err := s.countLocked(ctx, c, counting, rule, now); !counted || err != nil {
			return 0, err
		}
	} else {
		if much, err := s.muchDue(ctx, c, []*policy.Rule{rule}, now); len(much) == 0 || err != nil {
			return 0, err
		}
		if err := s.countOrder(ctx, c); err != nil {
			return 0, err
		}
		unlock, err := c.LockToSweep(ctx)
		if err != nil {
			return 0, err
		}
		defer unlock()
		if !c.IsCurrent() {
			return 0, nil
		}
	}
	for more := true; more && err == nil; {
		var done Swept
		done, _, err = s.sweepLocked(ctx, c, rule, now)
		deleted += done.Documents
		more = done.More
	}
	return deleted, err
}

// muchDue are those of the rules by which more records are due than are better deleted one by one.
func (s *Sweeper) muchDue(ctx context.Context, c storage.Collection, rules []*policy.Rule, now int64) (much []*policy.Rule, err error) {
	if len(rules) == 0 {
		return nil, nil
	}
	v, err := s.store.View(ctx)
	if err != nil {
		return nil, err
	}
	defer v.Close()
	for _, rule := range rules {
		n, err := c.Read(v).Dates().Count(rule, now, s.Limits.Few)
		if err != nil {
			return nil, err
		}
		if n >= s.Limits.Few {
			much = append(much, rule)
		}
	}
	return much, nil
}
