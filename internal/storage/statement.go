package storage

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/ebbdb/ebb/internal/clock"
	"github.com/ebbdb/ebb/internal/kv"
	"github.com/ebbdb/ebb/internal/mongoerr"
	"github.com/ebbdb/ebb/internal/namespace"
	"github.com/ebbdb/ebb/internal/storage/history"
	"github.com/ebbdb/ebb/internal/storage/oplog"
	"github.com/ebbdb/ebb/internal/storage/ownership"
)

// A transaction of several statements lives from one command to the next. All of them read what was there when it began, and what
// it has written. It differs from the transaction of one write in how it meets others: a document that somebody else has changed
// since is a WriteConflict at the statement that wants it, and one that it has changed keeps others waiting until it ends
// (ownership.Intents).
//
// Sweeps go on beside it. They leave what it has written as it is committed: the records, their entries, and the numbers of records that it
// has put where a sweep has been (expiryorder.Tombstone). So nobody sweeps while one of its statements writes, nor while it commits. What was swept
// since it began it goes on reading; what it writes it looks for as it is now.

// TransactionOptions are what is said of a transaction of several statements.
type TransactionOptions struct {
	// Now is its one time, in milliseconds since the epoch: what it has read does not expire under it.
	Now int64
	// History is that of its session, whose number is the transaction's; nil where it has none.
	History *history.History
	// LockTimeout is how long it waits for a collection that is being changed; negative: as long as the statement may take.
	LockTimeout time.Duration
	// Past is what it reads in the place of what is there when it begins; nil for that.
	Past *Past
}

// statements is what a Txn has where it is one of several statements.
type statements struct {
	TransactionOptions
	intent     *ownership.Intent
	conflicted bool            // with another transaction; it can only be rolled back
	failed     error           // to look at what is there now
	present    kv.Snapshot     // what is committed while a statement writes, once it was asked for
	hidesUpTo  int64           // what had been hidden when it began, see Options.HidesUpTo
	made       map[uint32]bool // the numbers of the collections that it has made
}

// BeginTransaction starts a transaction of several statements.
func (s *Store) BeginTransaction(ctx context.Context, o TransactionOptions) (*Txn, error) {
	intent := s.intents.Begin()
	t, err := s.beginIn(ctx, o.Now, o.Past)
	if err != nil {
		intent.End()
		return nil, err
	}
	t.statements = &statements{TransactionOptions: o, intent: intent, hidesUpTo: s.options.HidesUpTo()}
	if o.History != nil {
		t.history = o.History.Transaction()
	}
	return t, nil
}

// Statement has what the transaction reads from now on end with ctx. What it wrote before is counted.
func (t *Txn) Statement(ctx context.Context) *View {
	t.view.ctx = ctx
	t.kv.Within(ctx)
	for _, w := range t.writers {
		w.entries.Context = ctx
	}
	t.flush()
	return t.view
}

// Write runs f on the collection called ns, which is made where there is none if o says so. What f has written when it fails stays in the
// transaction, which is then good for nothing but Rollback.
func (t *Txn) Write(ctx context.Context, ns namespace.NS, o WriteOptions, f func(*Writer) error) error {
	t.Statement(ctx)
	w, err := t.Writer(ns)
	if o.Create && mongoerr.Is(err, mongoerr.NamespaceNotFound) {
		if _, err := t.CreateCollection(ctx, ns, nil); err != nil {
			return err
		}
		w, err = t.Writer(ns)
	}
	if err != nil {
		return err
	}
	if w.c.Options.Capped {
		return mongoerr.New(mongoerr.OperationNotSupportedInTransaction, "Collection '%s' is a capped collection. Writes in transactions are not allowed on capped collections.", ns)
	}
	w.entries.Context = ctx
	lock := w.c.state.lock
	if err := lock.Acquire(ctx, ownership.Statement); err != nil {
		return err
	}
	defer lock.Release(ownership.Statement)
	defer t.forgetPresent()
	before := w.entries.Keys
	err = f(w)
	switch {
	case t.statements.failed != nil:
		return t.statements.failed
	case t.statements.conflicted:
		o.conflicted()
		return conflict()
	case err != nil:
		return err
	}
	if err := t.checkSize(); err != nil {
		return err
	}
	t.flush()
	if o.Keys != nil {
		o.Keys.Inserted += w.entries.Keys.Inserted - before.Inserted
		o.Keys.Deleted += w.entries.Keys.Deleted - before.Deleted
	}
	return nil
}

// checkSize refuses to go on when the transaction has become too large.
func (t *Txn) checkSize() error {
	if size, most := t.Size(), t.store.can.MaxTxnBytes; size > most {
		return mongoerr.New(mongoerr.TransactionTooLarge, "Total size of all transaction operations must be less than %d. Actual size is %d", most, size)
	}
	return nil
}

// circumstances are what the oplog says of the transaction.
func (t *Txn) circumstances() oplog.Circumstances {
	c := oplog.Circumstances{Wall: t.modifiedAt()}
	if h := t.history; h != nil {
		c.Session, c.TxnNumber, c.Transaction = h.Session, h.Number, t.statements != nil
	}
	return c
}

// waitForLock takes a collection's lock shared for the transaction, as long as that may take.
func (t *Txn) waitForLock(c *collection) error {
	timeout := t.statements.LockTimeout
	ctx := t.view.ctx
	if timeout >= 0 {
		var cancel context.CancelFunc
		ctx, cancel = clock.WithTimeout(ctx, t.store.options.Clock, timeout)
		defer cancel()
	}
	if err := c.state.lock.Acquire(ctx, ownership.Lasting); err != nil {
		if t.view.ctx.Err() != nil {
			return context.Cause(t.view.ctx)
		}
		return mongoerr.New(mongoerr.LockTimeout, "Unable to acquire IX lock on '%s' within %dms.", c.NS, timeout.Milliseconds())
	}
	t.locks = append(t.locks, held{c.state.lock, ownership.Lasting})
	return nil
}

// keepOutSweeps has nobody sweep what a transaction of several statements has written to until it has ended. It takes locks in the order
// of collections, so that no two wait for each other.
func (t *Txn) keepOutSweeps(ctx context.Context) error {
	if t.statements == nil {
		return nil
	}
	written := slices.SortedFunc(slices.Values(t.writers), func(a, b *Writer) int { return cmp.Compare(a.c.ID, b.c.ID) })
	for _, w := range written {
		if err := w.c.state.lock.Acquire(ctx, ownership.Statement); err != nil {
			return err
		}
		t.locks = append(t.locks, held{w.c.state.lock, ownership.Statement})
	}
	return nil
}

// take has the transaction's key be claimed by it alone, or be in conflict. isNew says that it was not its own before.
func (t *Txn) take(key []byte) (isNew bool) {
	s := t.statements
	if s.conflicted {
		return false
	}
	isNew, ok := s.intent.Take(key)
	s.conflicted = !ok || t.kv.Conflicts(key)
	return isNew && !s.conflicted
}

// takeRecord is take for a record that the transaction has read. One that was swept since it began is in conflict. From now on it is spared.
func (t *Txn) takeRecord(c *collection, key []byte) {
	if t.take(key) && c.state.lastSweep.Load() > t.swept && !t.isThere(key) {
		t.statements.conflicted = true
	}
}

// look is what is committed while a statement writes; nil when that cannot be read, of which the statement fails.
func (t *Txn) look() kv.Reader {
	s := t.statements
	if s.present == nil && s.failed == nil {
		if s.present, s.failed = t.store.engine.Snapshot(); s.failed != nil {
			s.failed = fmt.Errorf("storage: look at what is there now: %w", s.failed)
		}
	}
	if s.failed != nil {
		return nil
	}
	return s.present
}

// isThere says whether a key is there as things are, which they stay while the statement writes.
func (t *Txn) isThere(key []byte) bool {
	r := t.look()
	if r == nil {
		return false
	}
	_, err := r.Get(key)
	if err != nil && !errors.Is(err, kv.ErrNotFound) {
		t.statements.failed = fmt.Errorf("storage: look at what is there now: %w", err)
	}
	return err == nil
}

func (t *Txn) forgetPresent() {
	if s := t.statements; s.present != nil {
		_ = s.present.Close() // it was only read
		s.present = nil
	}
}

// errHeld is in the way of a write: a transaction of several statements has one of its keys.
type errHeld struct{ until <-chan struct{} }

func (*errHeld) Error() string { return "storage: a transaction holds the document" }

// wait waits until what is in the way of a write is over; ok is false where err is something else.
func (s *Store) wait(ctx context.Context, o *WriteOptions, err error) (ok bool, failed error) {
	if err == nil {
		return false, nil
	}
	var in *errHeld
	if !errors.As(err, &in) {
		return false, err
	}
	o.conflicted()
	select {
	case <-in.until:
		return true, nil
	case <-ctx.Done():
		return false, context.Cause(ctx)
	}
}
