package storage

import (
	"context"

	"github.com/ebbdb/ebb/internal/kv"
	"github.com/ebbdb/ebb/internal/namespace"
	"github.com/ebbdb/ebb/internal/ttl/policy"
)

// Expire deletes the record with the id if it has expired by the rule at the transaction's now, looking at the document
// and at the rule as they are in the transaction, and that may be deleted: while deleting is paused, or in its grace, it is not. rec is
// what was deleted; ok is false when nothing was.
func (w *Writer) Expire(rule *policy.Rule, id RecordID) (rec Record, ok bool, err error) {
	err = w.ExpireMany(rule, []RecordID{id}, func(r Record, deleted bool) bool {
		rec, ok = r, deleted
		return true
	})
	if !ok {
		return Record{}, false, err
	}
	return rec, true, err
}

// ExpireMany is Expire for many records, which are read at once. It calls examined after each with what was found (no
// document when there is none any more) and whether it was deleted, until examined returns false. An id that is given
// again is examined again, and not there.
func (w *Writer) ExpireMany(rule *policy.Rule, ids []RecordID, examined func(rec Record, deleted bool) (more bool)) error {
	return w.expireMany(rule, ids, false, examined)
}

// expireMany is ExpireMany; all deletes also what that leaves alone for now.
func (w *Writer) expireMany(rule *policy.Rule, ids []RecordID, all bool, examined func(rec Record, deleted bool) (more bool)) error {
	rule, ok := w.current(rule)
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
	return true, w.remove(DocumentExpired, rec)
}

// expireBatch is how many records one transaction of ExpireNow deletes at most.
const expireBatch = 1000

// ExpireNow deletes all documents of the collection called ns that have expired by the rule at now, in transactions of
// bounded size, and returns how many those were.
func (s *Store) ExpireNow(ctx context.Context, ns namespace.NS, rule *policy.Rule, now int64) (deleted int64, err error) {
	for after, more := []byte(nil), true; more && err == nil; {
		var n int64
		var next []byte
		err = s.Write(ctx, ns, WriteOptions{Durability: kv.Buffered, Now: now}, func(w *Writer) error {
			var err error
			n, next, err = w.expireSome(rule, after)
			return err
		})
		deleted += n
		after, more = next, next != nil
	}
	return deleted, err
}

// expireSome deletes a batch of what is due and returns where to go on, nil when there is no more.
func (w *Writer) expireSome(rule *policy.Rule, after []byte) (n int64, next []byte, err error) {
	ids, next, err := w.Dates().All(rule, w.view.now, after, expireBatch)
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

// expireAhead deletes beside writers what its caller would delete next while it holds the collection's lock exclusively, where
// that is much: it gives the lock back meanwhile. Nobody else changes what the collection is, unless an index build ends; then
// same is false, and what the caller knows of c is old.
func (s *Store) expireAhead(ctx context.Context, c *collection, rules []*policy.Rule) (deleted int64, same bool, err error) {
	now := s.hidingTime()
	rules, err = s.withMuchDue(ctx, c, rules, now)
	if err != nil || len(rules) == 0 {
		return 0, true, err
	}
	c.state.lock.release(true)
	for i := 0; i < len(rules) && err == nil; i++ {
		var n int64
		n, err = s.expireBeside(ctx, c, rules[i], now)
		deleted += n
	}
	_ = c.state.lock.acquire(context.WithoutCancel(ctx), true) // which nothing ends but its turn: the caller gives it back
	return deleted, s.current.Load().collections[c.ID] == c, err
}

// withMuchDue are those of the rules by which more records are due than are better deleted one by one.
func (s *Store) withMuchDue(ctx context.Context, c *collection, rules []*policy.Rule, now int64) (much []*policy.Rule, err error) {
	if len(rules) == 0 {
		return nil, nil
	}
	v, err := s.View(ctx)
	if err != nil {
		return nil, err
	}
	defer v.Close()
	for _, rule := range rules {
		n, err := v.read(c).Dates().Count(rule, now, s.fewSwept)
		if err != nil {
			return nil, err
		}
		if n >= s.fewSwept {
			much = append(much, rule)
		}
	}
	return much, nil
}

// expireBeside is ExpireNow for what may be much, which it sweeps if it can.
func (s *Store) expireBeside(ctx context.Context, c *collection, rule *policy.Rule, now int64) (deleted int64, err error) {
	much, err := s.withMuchDue(ctx, c, []*policy.Rule{rule}, now)
	if err == nil && len(much) > 0 {
		deleted, err = s.sweepPatiently(ctx, c, rule, now)
	}
	if err != nil {
		return deleted, err
	}
	n, err := s.ExpireNow(ctx, c.NS, rule, now)
	return deleted + n, err
}

// expireLocked is ExpireNow for one who holds the collection's lock exclusively.
func (s *Store) expireLocked(ctx context.Context, c *collection, rule *policy.Rule, now int64) (deleted int64, err error) {
	deleted, err = s.sweepBefore(ctx, c, rule, now)
	if err != nil {
		return deleted, err
	}
	for after, more := []byte(nil), true; more; more = after != nil {
		n := int64(0)
		t, err := s.BeginAt(ctx, now)
		if err != nil {
			return deleted, err
		}
		if n, after, err = t.writer(c).expireSome(rule, after); err != nil {
			t.Rollback()
			return deleted, err
		}
		if err := t.Commit(ctx, kv.Buffered); err != nil {
			return deleted, err
		}
		deleted += n
	}
	return deleted, nil
}
