package storage

import (
	"context"

	"github.com/ebbdb/ebb/internal/kv"
	"github.com/ebbdb/ebb/internal/storage/meaning"
	"github.com/ebbdb/ebb/internal/ttl/policy"
)

// ExpireMany deletes those of the records with the ids that have expired by the rule at the transaction's now, looking at the documents
// and at the rule as they are in the transaction, and that may be deleted: while deleting is paused, or in its grace, none is. It
// calls examined after each with what was found (no document when there is none any more) and whether it was deleted, until
// examined returns false. An id that is given again is examined again, and not there.
func (w *Writer) ExpireMany(rule *policy.Rule, ids []RecordID, examined func(rec Record, deleted bool) (more bool)) error {
	return w.expireMany(rule, ids, false, examined)
}

// expireMany is ExpireMany; all deletes also what that leaves alone for now.
func (w *Writer) expireMany(rule *policy.Rule, ids []RecordID, all bool, examined func(rec Record, deleted bool) (more bool)) error {
	rule, ok := w.c.rules.Counterpart(rule)
	if !ok {
		ids = nil
	}
	found, err := w.Unhidden().GetMany(ids)
	if err != nil {
		return err
	}
	gone := make(map[string]struct{}, len(ids))
	for i, rec := range found {
		if _, again := gone[string(ids[i])]; again {
			rec = Record{}
		}
		deleted, err := w.expire(rule, rec, all)
		if err != nil {
			return err
		}
		if deleted {
			gone[string(ids[i])] = struct{}{}
		}
		if !examined(rec, deleted) {
			return nil
		}
	}
	return nil
}

func (w *Writer) expire(rule *policy.Rule, rec Record, all bool) (deleted bool, err error) {
	if rec.Doc == nil {
		return false, nil
	}
	deadline, _ := rule.Deadline(rec.Doc, rec.Modified)
	if deadline > w.view.now || !all && !w.mayDelete(rule, deadline) {
		return false, nil
	}
	w.expired++
	return true, w.remove(meaning.DocumentExpired, rec)
}

// dueBatch is how many records one transaction of deleteDue deletes at most.
const dueBatch = 1000

// deletion is how deleteDue goes about it.
type deletion bool

const (
	// besideWriters: others write to the collection meanwhile.
	besideWriters deletion = false
	// underLock: the caller holds the collection's lock exclusively.
	underLock deletion = true
)

// deleteDue deletes all documents of a collection that have expired by the rule at now, and returns how many those were. It also deletes
// what is left alone for now, in its grace or while deleting is paused: it is for commands, in whose way that is. What can be is
// swept; the rest goes in transactions of bounded size.
func (s *Store) deleteDue(ctx context.Context, c *collection, rule *policy.Rule, now int64, how deletion) (deleted int64, err error) {
	if deleted, err = s.sweeper.SweepDue(ctx, s.handle(c), rule, now, how == underLock); err != nil {
		return deleted, err
	}
	for after, more := []byte(nil), true; more; more = after != nil {
		var n int64
		var next []byte
		err := s.writeDue(ctx, c, now, how, func(w *Writer) (err error) {
			n, next, err = w.deleteSome(rule, after)
			return err
		})
		if err != nil {
			return deleted, err
		}
		deleted += n
		after = next
	}
	return deleted, nil
}

// writeDue runs f in a transaction of deleteDue.
func (s *Store) writeDue(ctx context.Context, c *collection, now int64, how deletion, f func(*Writer) error) error {
	if how == besideWriters {
		return s.Write(ctx, c.NS, WriteOptions{Durability: kv.Buffered, Now: now}, f)
	}
	t, w, err := s.handle(c).Begin(ctx, now)
	if err != nil {
		return err
	}
	defer t.Rollback()
	if err := f(w); err != nil {
		return err
	}
	return t.Commit(ctx, kv.Buffered)
}

// deleteSome deletes a batch of what is due and returns where to go on, nil when there is no more.
func (w *Writer) deleteSome(rule *policy.Rule, after []byte) (n int64, next []byte, err error) {
	ids, next, err := w.Dates().All(rule, w.view.now, after, dueBatch)
	if err != nil {
		return 0, nil, err
	}
	err = w.expireMany(rule, ids, true, func(_ Record, deleted bool) bool {
		if deleted {
			n++
		}
		return true
	})
	if err != nil {
		return 0, nil, err
	}
	return n, next, nil
}

// deleteDueAhead deletes beside writers what its caller would delete next while it holds the collection's lock exclusively, where
// that is much: it gives the lock back meanwhile. Nobody else changes what the collection is, unless an index build ends; then
// same is false, and what the caller knows of c is old.
func (s *Store) deleteDueAhead(ctx context.Context, c *collection, rules []*policy.Rule) (deleted int64, same bool, err error) {
	now := s.expiryClock.Time()
	rules, err = s.sweeper.MuchDue(ctx, s.handle(c), rules, now)
	if err != nil || len(rules) == 0 {
		return 0, true, err
	}
	c.state.lock.Release(true)
	for i := 0; i < len(rules) && err == nil; i++ {
		var n int64
		n, err = s.deleteDue(ctx, c, rules[i], now, besideWriters)
		deleted += n
	}
	_ = c.state.lock.Acquire(context.WithoutCancel(ctx), true) // which nothing ends but its turn: the caller gives it back
	return deleted, s.current.Load().collections[c.ID] == c, err
}
