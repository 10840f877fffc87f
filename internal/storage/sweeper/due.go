package sweeper

import (
	"context"

	"github.com/ebbdb/ebb/internal/kv"
	"github.com/ebbdb/ebb/internal/storage"
	"github.com/ebbdb/ebb/internal/ttl/policy"
)

// dueBatch is how many records one transaction of DeleteDue deletes at most.
const dueBatch = 1000

// Deletion is how DeleteDue goes about it.
type Deletion bool

const (
	// BesideWriters: others write to the collection meanwhile.
	BesideWriters Deletion = false
	// UnderLock: the caller holds the collection's lock exclusively.
	UnderLock Deletion = true
)

// DeleteDue deletes all documents of a collection that have expired by the rule at now, and returns how many those were. It also deletes
// what is left alone for now, in its grace or while deleting is paused: it is for commands, in whose way that is. What can be is
// swept; the rest goes in transactions of bounded size.
func (s *Sweeper) DeleteDue(ctx context.Context, c storage.Collection, rule *policy.Rule, now int64, how Deletion) (deleted int64, err error) {
	if deleted, err = s.sweepDue(ctx, c, rule, now, how == UnderLock); err != nil {
		return deleted, err
	}
	for after, more := []byte(nil), true; more; more = after != nil {
		var n int64
		var next []byte
		err := s.writeDue(ctx, c, now, how, func(w *storage.Writer) (err error) {
			n, next, err = deleteSome(w, rule, after)
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

// writeDue runs f in a transaction of DeleteDue.
func (s *Sweeper) writeDue(ctx context.Context, c storage.Collection, now int64, how Deletion, f func(*storage.Writer) error) error {
	if how == BesideWriters {
		return s.store.Write(ctx, c.NS, storage.WriteOptions{Durability: kv.Buffered, Now: now, PassesOver: true}, f)
	}
	t, w, err := c.Begin(ctx, now)
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
func deleteSome(w *storage.Writer, rule *policy.Rule, after []byte) (n int64, next []byte, err error) {
	ids, next, err := w.Dates().All(rule, w.View().Now(), after, dueBatch)
	if err != nil {
		return 0, nil, err
	}
	if n, err = w.DeleteDue(rule, ids); err != nil {
		return 0, nil, err
	}
	return n, next, nil
}

// DeleteDueAhead deletes beside writers what its caller, who changes what the collection is (storage.Store.LockToChange), would delete
// next while nobody writes, where that is much. Where an index build ends meanwhile, same is false, and what the caller knows of c
// is old.
func (s *Sweeper) DeleteDueAhead(ctx context.Context, c storage.Collection, rules []*policy.Rule) (deleted int64, same bool, err error) {
	now := s.store.ExpiryTime()
	rules, err = s.muchDue(ctx, c, rules, now)
	if err != nil || len(rules) == 0 {
		return 0, true, err
	}
	err = c.Unlocked(func() error {
		for _, rule := range rules {
			n, err := s.DeleteDue(ctx, c, rule, now, BesideWriters)
			if deleted += n; err != nil {
				return err
			}
		}
		return nil
	})
	return deleted, c.IsCurrent(), err
}
