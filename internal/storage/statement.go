package storage

import (
	"context"
	"errors"
	"time"

	"github.com/ebbdb/ebb/internal/clock"
	"github.com/ebbdb/ebb/internal/mongoerr"
	"github.com/ebbdb/ebb/internal/namespace"
	"github.com/ebbdb/ebb/internal/storage/oplog"
	"github.com/ebbdb/ebb/internal/storage/ownership"
)

// A transaction of several statements lives from one command to the next. All of them read what was there when it began, and what
// it has written. It differs from the transaction of one write in how it meets others: a document that somebody else has changed
// since is a WriteConflict at the statement that wants it, and one that it has changed keeps others waiting until it ends
// (ownership.Intents).

// TransactionOptions are what is said of a transaction of several statements.
type TransactionOptions struct {
	// Now is its one time, in milliseconds since the epoch: what it has read does not expire under it.
	Now int64
	// History is that of its session, whose number is the transaction's; nil where it has none.
	History *History
	// LockTimeout is how long it waits for a collection that is being changed; negative: as long as the statement may take.
	LockTimeout time.Duration
	// MaxBytes bounds what it writes; 0: only the engine does.
	MaxBytes int
}

// statements is what a Txn has where it is one of several statements.
type statements struct {
	TransactionOptions
	intent     *ownership.Intent
	conflicted bool // with another transaction; it can only be rolled back
}

// BeginTransaction starts a transaction of several statements.
func (s *Store) BeginTransaction(ctx context.Context, o TransactionOptions) (*Txn, error) {
	intent := s.intents.Begin() // before it reads: see Writer.Sweep
	t, err := s.BeginAt(ctx, o.Now)
	if err != nil {
		intent.End()
		return nil, err
	}
	t.statements = &statements{TransactionOptions: o, intent: intent}
	if o.History != nil {
		t.history = &write{History: o.History, state: CommittedState}
	}
	return t, nil
}

// Statement has what the transaction reads from now on end with ctx. What it wrote before is counted.
func (t *Txn) Statement(ctx context.Context) *View {
	t.view.ctx = ctx
	for _, w := range t.writers {
		w.ctx = ctx
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
		if err := t.createImplicitly(ctx, ns); err != nil {
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
	w.ctx = ctx
	before := w.keys
	err = f(w)
	switch {
	case t.statements.conflicted:
		return conflict()
	case err != nil:
		return err
	case t.statements.MaxBytes > 0 && t.kv.Size()+t.log.Size()+t.preImages.bytes > t.statements.MaxBytes:
		return mongoerr.New(mongoerr.TransactionTooLarge, "Total size of all transaction operations must be less than %d. Actual size is %d",
			t.statements.MaxBytes, t.kv.Size()+t.log.Size()+t.preImages.bytes)
	}
	t.flush()
	if o.Keys != nil {
		o.Keys.Inserted += w.keys.Inserted - before.Inserted
		o.Keys.Deleted += w.keys.Deleted - before.Deleted
	}
	return nil
}

// createImplicitly makes a collection for the transaction. It is there for everybody at once, and stays if the transaction is rolled
// back.
func (t *Txn) createImplicitly(ctx context.Context, ns namespace.NS) error {
	if err := t.store.createImplicitly(ctx, ns); err != nil {
		return err
	}
	return t.Learn(ns)
}

// Learn has the transaction see a collection that was made after it began. It fails with WriteConflict where another one of those that it
// sees has changed since.
func (t *Txn) Learn(ns namespace.NS) error {
	now := t.store.current.Load()
	entry := now.catalog.Collection(ns)
	for id, c := range t.view.version.collections {
		if now.collections[id] != c {
			return conflict()
		}
	}
	if entry == nil {
		return conflict()
	}
	t.view.version = now
	return nil
}

// circumstances are what the oplog says of the transaction.
func (t *Txn) circumstances() oplog.Circumstances {
	c := oplog.Circumstances{Wall: t.view.now}
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
	if err := c.state.lock.Acquire(ctx, false); err != nil {
		if t.view.ctx.Err() != nil {
			return context.Cause(t.view.ctx)
		}
		return mongoerr.New(mongoerr.LockTimeout, "Unable to acquire IX lock on '%s' within %dms.", c.NS, timeout.Milliseconds())
	}
	t.locks = append(t.locks, held{c.state.lock, false})
	return nil
}

// take has the transaction's key be claimed by it alone, or be in conflict.
func (t *Txn) take(key []byte) {
	s := t.statements
	if !s.conflicted && (t.kv.Conflicts(key) || !s.intent.Take(key)) {
		s.conflicted = true
	}
}

// errHeld is in the way of a write: a transaction of several statements has one of its keys.
type errHeld struct{ until <-chan struct{} }

func (*errHeld) Error() string { return "storage: a transaction holds the document" }

// wait waits until what is in the way of a write is over; ok is false where err is something else.
func (s *Store) wait(ctx context.Context, err error) (ok bool, failed error) {
	if err == nil {
		return false, nil
	}
	var in *errHeld
	if !errors.As(err, &in) {
		return false, err
	}
	select {
	case <-in.until:
		return true, nil
	case <-ctx.Done():
		return false, context.Cause(ctx)
	}
}
