package storage

import (
	"context"
	"errors"
	"sync/atomic"
	"time"

	"github.com/ebbdb/ebb/internal/kv"
	"github.com/ebbdb/ebb/internal/mongoerr"
	"github.com/ebbdb/ebb/internal/namespace"
	"github.com/ebbdb/ebb/internal/storage/history"
	"github.com/ebbdb/ebb/internal/storage/indexwrite"
	"github.com/ebbdb/ebb/internal/storage/ownership"
	"github.com/ebbdb/ebb/internal/throttle"
)

// WriteOptions say how Write does it.
type WriteOptions struct {
	Durability kv.Durability
	// Create makes a plain collection when there is none.
	Create bool
	// Now is the operation's time in milliseconds; 0 is the store's.
	Now int64
	// Committed, unless nil, is given the number of the Commit, if there was one: Store.AwaitDurable waits for it.
	Committed *uint64
	// Patience, unless nil, is how long a commit is waited for that others have to have first. Write returns nil where it is left.
	Patience *kv.Patience
	// Last says that the commit is the last of what is run Apart.
	Last bool
	// Retry is given for a statement of a retryable write; nil: it is none.
	Retry *history.Retry
	// PassesOver says that f passes over what open transactions have, if it is asked for (Writer.IsSpared): where it meets what one has just got it is
	// run again at once, and does not wait.
	PassesOver bool
	// OfMember says that the member of a replica set writes itself: it may write what it keeps as one (catalog.Collection.OfReplicaSet).
	OfMember bool
	// Keys, unless nil, has added to it how many index keys came and went.
	Keys *indexwrite.KeyCount
	// Conflicts, unless nil, counts how often others were in the way: f is run again then, after their end, or fails in a transaction.
	Conflicts *atomic.Int64
}

// conflicted counts one.
func (o *WriteOptions) conflicted() {
	if o.Conflicts != nil {
		o.Conflicts.Add(1)
	}
}

// A try that follows a conflict waits for others that have met one over the same keys, so only operations on their first try, and transactions,
// can still be in its way: most writes are done by the second try. One that is not goes on trying until its context ends. After promptTries
// conflicts it rests before each try, twice as long as before, from firstRest to longestRest.
const (
	promptTries = 10
	firstRest   = time.Millisecond
	longestRest = 100 * time.Millisecond
)

// maxPassed is how often Write runs an operation again that passes over what open transactions have.
const maxPassed = 100

// Write runs f in a transaction on the collection called ns and commits it. When others changed the same records or took
// the same unique keys meanwhile, f is run again, from the beginning and on what is there then; f must therefore set
// whatever it hands out anew each time. An error of f is returned and nothing is written.
func (s *Store) Write(ctx context.Context, ns namespace.NS, o WriteOptions, f func(*Writer) error) error {
	if o.Now == 0 {
		o.Now = s.Now()
	}
	if p := o.Patience; p != nil {
		if p.Left != nil {
			return errLeft(p.Left)
		}
		ctx = kv.WithPatience(ctx, p)
	}
	contended := ownership.Stripes(0)
	for conflicts, passed := 0, 0; ; {
		claimed, err := s.tryWrite(ctx, ns, o, f, contended)
		if o.PassesOver && errors.As(err, new(*errHeld)) && ctx.Err() == nil {
			if passed++; passed == maxPassed {
				return conflict()
			}
			continue
		}
		if over, failed := s.wait(ctx, &o, err); over {
			continue
		} else if failed != err {
			return failed
		}
		if !errors.Is(err, kv.ErrConflict) {
			return err
		}
		o.conflicted()
		contended |= claimed
		if conflicts++; conflicts >= promptTries && !throttle.Wait(ctx.Done(), restAfter(conflicts)) {
			return context.Cause(ctx)
		}
	}
}

// restAfter is how long Write rests after so many conflicts, which are promptTries or more.
func restAfter(conflicts int) time.Duration {
	return min(firstRest<<min(conflicts-promptTries, 10), longestRest)
}

// tryWrite runs f once, alone among those that contended for the same keys.
func (s *Store) tryWrite(ctx context.Context, ns namespace.NS, o WriteOptions, f func(*Writer) error, contended ownership.Stripes) (claimed ownership.Stripes, err error) {
	c, exclusive, err := s.lockToWrite(ctx, ns, o.Create)
	if err != nil {
		return 0, err
	}
	left := false // what is held goes on being so
	letGo := func() { c.state.lock.Release(ownership.ModeOf(exclusive)) }
	defer func() {
		if !left {
			letGo()
		}
	}()
	if !o.OfMember {
		if err := s.checkWrite(c.Collection); err != nil {
			return 0, err
		}
	}
	if err := s.latches.Acquire(ctx, contended); err != nil {
		return 0, err
	}
	unlock := letGo
	letGo = func() { s.latches.Release(contended); unlock() }
	t, err := s.begin(ctx, o.Now, s.engine.BeginBlind)
	if err != nil {
		return 0, err
	}
	defer func() {
		if !left {
			t.Rollback()
		}
	}()
	if o.Retry != nil {
		t.retry(o.Retry)
	}
	if t.view.version.collections[c.ID] != c { // it was changed by one who had let go of the lock (version.doubt)
		return 0, kv.ErrConflict
	}
	w := t.writer(c)
	w.entries.Context = ctx
	err = f(w)
	if t.blocked != nil {
		return 0, &errHeld{t.blocked}
	}
	if err != nil {
		return 0, err
	}
	if o.Retry != nil && o.Retry.Before != nil && t.log.Len() > 0 {
		if err := o.Retry.Before(); err != nil {
			return 0, err
		}
	}
	if o.Last {
		err = atLast(ctx, func() error { return t.commit(ctx, o.Durability) })
	} else {
		err = t.commit(ctx, o.Durability)
	}
	if u, unsettled := err.(*kv.Unsettled); unsettled {
		left, err = true, nil
		s.leave(o.Patience, u, letGo)
	} else if err == nil && o.Committed != nil && t.meaning.Number > 0 {
		*o.Committed = t.meaning.Number
	}
	if err == nil && o.Keys != nil {
		o.Keys.Inserted += w.entries.Keys.Inserted
		o.Keys.Deleted += w.entries.Keys.Deleted
	}
	return w.claimed, err
}

// lockToWrite takes the lock of the collection called ns, as it is then defined. The documents of a capped collection are
// written by one at a time: each insert may delete the oldest.
func (s *Store) lockToWrite(ctx context.Context, ns namespace.NS, create bool) (c *collection, exclusive bool, err error) {
	for {
		c, err := s.current.Load().writable(ns)
		if create && mongoerr.Is(err, mongoerr.NamespaceNotFound) {
			if err := s.createImplicitly(ctx, ns); err != nil {
				return nil, false, err
			}
			if p := kv.PatienceOf(ctx); p != nil && p.Left != nil { // the collection is not there yet
				return nil, false, errLeft(p.Left)
			}
			continue
		}
		if err != nil {
			return nil, false, err
		}
		exclusive := c.Options.Capped
		if err := c.state.lock.Acquire(ctx, ownership.ModeOf(exclusive)); err != nil {
			return nil, false, err
		}
		if s.current.Load().collections[c.ID] == c {
			return c, exclusive, nil
		}
		c.state.lock.Release(ownership.ModeOf(exclusive))
	}
}
