package storage

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/ebbdb/ebb/internal/kv"
	"github.com/ebbdb/ebb/internal/mongoerr"
	"github.com/ebbdb/ebb/internal/namespace"
	"github.com/ebbdb/ebb/internal/storage/expiryclock"
	"github.com/ebbdb/ebb/internal/storage/history"
	"github.com/ebbdb/ebb/internal/storage/meaning"
	"github.com/ebbdb/ebb/internal/storage/oplog"
	"github.com/ebbdb/ebb/internal/storage/ownership"
	"github.com/ebbdb/ebb/internal/storage/preimage"
	"github.com/ebbdb/ebb/internal/storage/witness"
)

// Txn is one transaction: a view that shows its own writes, and a Writer for each collection it changes. It is used by
// one goroutine at a time and ended by exactly one Commit or Rollback.
type Txn struct {
	store   *Store
	kv      kv.Txn
	view    *View
	writers []*Writer
	locks   []held
	meaning meaning.Meaning
	log     oplog.Log // of what it does, where somebody is told
	// statements is nil in the transaction of one write; blocked then is closed when somebody else's is over that has what it wants.
	statements *statements
	history    *history.Commit  // nil where nobody sends again what it does
	preImages  *preimage.Images // nil as long as none is kept
	documents  []witness.Document
	blocked    <-chan struct{}
	swept      uint64 // how many sweeps there had been when it began
	modified   int64  // see modifiedAt, once dated
	dated      bool
	ended      bool

	// own is its view, and first and room are for the Writer that is all that most have: with them it is one piece of memory.
	own   View
	first Writer
	room  [1]*Writer
}

type held struct {
	lock ownership.Lock
	mode ownership.Mode
}

// Begin starts a transaction at the store's time. Its reads end with ctx.
func (s *Store) Begin(ctx context.Context) (*Txn, error) { return s.BeginAt(ctx, s.Now()) }

// BeginAt is Begin for an operation whose now was fixed before.
func (s *Store) BeginAt(ctx context.Context, now int64) (*Txn, error) {
	return s.begin(ctx, now, s.engine.Begin)
}

// begin makes a transaction of one of the engine's. With BeginBlind it reads only what locks that are held keep as it is.
func (s *Store) begin(ctx context.Context, now int64, begin func() (kv.Txn, error)) (*Txn, error) {
	for {
		version, swept, hiding := s.current.Load(), s.sweeps.Load(), s.expiryClock.State()
		t, err := begin()
		if err != nil {
			return nil, fmt.Errorf("storage: begin: %w", err)
		}
		if s.current.IsCurrent(version) {
			return s.newTxn(ctx, version, t, now, hiding, swept), nil
		}
		t.Rollback()
		if err := s.current.Await(ctx); err != nil {
			return nil, err
		}
	}
}

func (s *Store) newTxn(ctx context.Context, v *version, t kv.Txn, now int64, h expiryclock.State, swept uint64) *Txn {
	t.Within(ctx)
	txn := &Txn{store: s, kv: t, swept: swept}
	txn.own = View{store: s, ctx: ctx, version: v, reader: t, txn: txn, now: now, hiding: h, swept: swept}
	txn.view = &txn.own
	return txn
}

// View reads what the transaction sees, its own writes included.
func (t *Txn) View() *View { return t.view }

// Number is that of the Commit that it became, 0 where it has written nothing.
func (t *Txn) Number() uint64 { return t.meaning.Number }

// modifiedAt is when what the transaction writes counts as modified, all of it, and what the oplog tells as its time. While the clock lies a little
// behind what has been hidden until then that is the time of that: what is born with less time to live than the clock was turned back would be hidden
// from the beginning.
func (t *Txn) modifiedAt() int64 {
	if !t.dated {
		t.modified, t.dated = max(t.view.now, t.view.hidesUpTo()), true
	}
	return t.modified
}

// Size is about how many bytes of writes the transaction holds, with what is told of them.
func (t *Txn) Size() int { return t.kv.Size() + t.log.Size() + t.preImages.Bytes() }

// hasRoom says whether the transaction may grow by so many bytes.
func (t *Txn) hasRoom(bytes int) error { return t.store.room(t.Size() + bytes) }

// Writer changes the collection called ns. From the first call on, that collection's definition stays as it is until
// the transaction ends. It fails with WriteConflict when the definition has changed since the transaction began, and with
// LockTimeout when it is being changed and waiting for that could wait forever.
func (t *Txn) Writer(ns namespace.NS) (*Writer, error) {
	c, err := t.view.version.writable(ns)
	if err == nil {
		err = t.store.checkWrite(c.Collection)
	}
	if err != nil {
		return nil, err
	}
	for _, w := range t.writers {
		if w.c == c {
			return w, nil
		}
	}
	if t.hasMade(c.ID) { // of which nobody else knows
		return t.writer(c), nil
	}
	if err := t.lock(c); err != nil {
		return nil, err
	}
	if t.store.current.Load().collections[c.ID] != c || t.statements == nil && c.state.lastSweep.Load() > t.swept {
		return nil, mongoerr.New(mongoerr.WriteConflict, "Collection %s has changed since the transaction began.", ns)
	}
	return t.writer(c), nil
}

func (t *Txn) lock(c *collection) error {
	mode := ownership.ModeOf(c.Options.Capped)
	if t.statements != nil {
		mode = ownership.Lasting
	}
	if c.state.lock.Try(mode) {
		t.locks = append(t.locks, held{c.state.lock, mode})
		return nil
	}
	if t.statements != nil {
		return t.waitForLock(c)
	}
	if len(t.locks) > 0 { // to wait while holding a lock could close a circle
		return mongoerr.New(mongoerr.LockTimeout, "Unable to acquire a lock on '%s' within 0ms.", c.NS)
	}
	if err := c.state.lock.Acquire(t.view.ctx, mode); err != nil {
		return err
	}
	t.locks = append(t.locks, held{c.state.lock, mode})
	return nil
}

// writer makes a Writer for a collection whose lock is held.
func (t *Txn) writer(c *collection) *Writer {
	w := &t.first
	if t.writers == nil {
		t.writers = t.room[:0]
	} else {
		w = &Writer{}
	}
	w.begin(t, c)
	t.writers = append(t.writers, w)
	return w
}

// Commit makes the transaction's writes visible, and durable as d says. A conflict is WriteConflict, and nothing was
// written; kv.ErrUndetermined means that nobody knows.
func (t *Txn) Commit(ctx context.Context, d kv.Durability) error {
	err := t.commit(ctx, d)
	if errors.Is(err, kv.ErrConflict) {
		return conflict()
	}
	return err
}

// CommitWithin is Commit for an operation that waits no longer than p has it. Where that ends before, it returns nil, p says why, and settled is called
// when it is known what has become of the transaction, with what Commit would have returned, before p.Settled is closed.
func (t *Txn) CommitWithin(ctx context.Context, d kv.Durability, p *kv.Patience, settled func(error)) error {
	if p == nil {
		return t.Commit(ctx, d)
	}
	if p.Left != nil {
		t.Rollback()
		return errLeft(p.Left)
	}
	err := t.commit(kv.WithPatience(ctx, p), d)
	if u, unsettled := err.(*kv.Unsettled); unsettled {
		t.store.leave(p, u.Then(func(err error) error { settled(err); return err }), func() {})
		return nil
	}
	if errors.Is(err, kv.ErrConflict) {
		return conflict()
	}
	return err
}

func conflict() error {
	return mongoerr.New(mongoerr.WriteConflict,
		"Caused by :: Write conflict during plan execution and yielding is disabled. :: Please retry your operation or multi-document transaction.")
}

// commit leaves the engine's ErrConflict as it is, and its Unsettled: all that the transaction holds it holds until that is settled.
func (t *Txn) commit(ctx context.Context, d kv.Durability) error {
	t.kv.Within(ctx)
	if err := t.keepOutSweeps(ctx); err != nil {
		t.kv.Rollback()
		t.end()
		return err
	}
	release, err := t.takeNames(ctx)
	if err != nil {
		t.kv.Rollback()
		t.end()
		return err
	}
	t.flush()
	t.mean()
	before := t.store.Catalog()
	err = t.kv.Commit(ctx, d)
	tell := func() { t.tellOf(ctx, before) }
	if u, left := err.(*kv.Unsettled); left {
		tell() // the operation is over when it is settled
		return u.Then(func(err error) error { return t.finish(ctx, release, func() {}, err) })
	}
	return t.finish(ctx, release, tell, err)
}

// finish is the end of a commit whose outcome is err. Where it is done, or may be, tell tells the operation.
func (t *Txn) finish(ctx context.Context, release, tell func(), err error) error {
	defer t.end()
	defer release()
	late, isLate := errors.AsType[*kv.Late](err)
	if err == nil || errors.Is(err, kv.ErrUndetermined) {
		tell() // of what may have been done, too: an audit log that lacks it is worse than one that has it for nothing
	}
	images := t.preImages.Len()
	switch {
	case err == nil:
	case isLate:
		t.store.later(late, func(visible bool) {
			if visible {
				t.store.imagesKept.Add(images)
				t.store.tell(&t.meaning)
			}
		})
	case t.meaning.DDL != nil:
		t.store.current.Fail(&t.meaning)
	}
	switch {
	case err == nil:
		if t.history.Committed(&t.meaning) {
			t.store.historyWrites.Add(1)
		}
		t.store.imagesKept.Add(images)
		t.store.tell(&t.meaning)
		return nil
	case errors.Is(err, kv.ErrTooLarge):
		return mongoerr.New(mongoerr.TransactionTooLarge, "Total size of all transaction operations must be less than the store's limit; it is about %d bytes", t.Size())
	case ctx.Err() != nil && errors.Is(err, ctx.Err()) && !isLate:
		return context.Cause(ctx)
	case errors.Is(err, kv.ErrConflict):
		return err
	case errors.Is(err, kv.ErrImpatient):
		return errLeft(kv.ErrImpatient)
	case errors.Is(err, kv.ErrNoSpace):
		return explainSpace(err)
	}
	return fmt.Errorf("storage: commit: %w", err)
}

// flush puts into the transaction what its writers have summed up.
func (t *Txn) flush() {
	for _, w := range t.writers {
		w.flush()
	}
}

// mean tells the engine what the transaction means.
func (t *Txn) mean() {
	for _, w := range t.writers {
		w.change.Multikey = w.entries.Multikey()
		w.logSummary()
		w.noteReserved()
		t.meaning.Add(&w.change)
	}
	t.store.stamp(t.kv, &t.meaning, &t.log, t.view.version, t.circumstances(), t.history, t.preImages)
	t.kv.Mean(&t.meaning)
}

// Rollback ends the transaction and leaves nothing of it. After Commit it does nothing.
func (t *Txn) Rollback() {
	if t.ended {
		return
	}
	t.kv.Rollback()
	t.end()
}

func (t *Txn) end() {
	t.ended = true
	t.log.Release()
	var waited []uint32
	if t.statements != nil {
		waited = t.statements.intent.End()
	}
	for _, h := range slices.Backward(t.locks) {
		h.lock.Release(h.mode)
	}
	t.locks = nil
	for _, collection := range waited {
		t.store.options.OnReleased(collection)
	}
}

// writable is the collection called ns for writing.
func (v *version) writable(ns namespace.NS) (*collection, error) {
	entry := v.catalog.Collection(ns)
	switch {
	case entry == nil:
		return nil, mongoerr.New(mongoerr.NamespaceNotFound, "ns not found: %s", ns)
	case entry.IsView():
		return nil, mongoerr.New(mongoerr.CommandNotSupportedOnView, "Namespace %s is a view, not a collection", ns)
	case entry.IsOplog():
		return nil, mongoerr.New(mongoerr.InvalidNamespace, "cannot write to '%s'", ns).Early()
	}
	return v.collections[entry.ID], nil
}
