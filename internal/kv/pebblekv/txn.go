package pebblekv

import (
	"context"
	"sync"
	"sync/atomic"

	"github.com/ebbdb/ebb/internal/kv"
	"github.com/ebbdb/ebb/internal/kv/overlay"
)

// txn is a kv.Txn.
type txn struct {
	overlay.View
	engine   *Engine
	snapshot snapshot // none yet in one that began blind and has not read
	begin    uint64   // the committer's sequence when it began, before the snapshot was taken
	commit   kv.Commit
	pending  pending
	older    *txn
	younger  *txn
	ended    bool
}

// What a key and a value take in a batch beside their bytes, about.
const batchOpOverhead = 12

func (t *txn) Within(context.Context) {}

func (t *txn) Mean(m kv.Meaning) { t.commit.Meaning = m }

func (t *txn) Stamp(ops ...kv.Op) {
	if t.commit.Stamped == nil { // most often an entry of the oplog, and what is kept of the session
		t.commit.Stamped = make([]kv.Op, 0, max(2, len(ops)))
	}
	t.commit.Stamped = append(t.commit.Stamped, ops...)
}

func (t *txn) Conflicts(key []byte) bool { return t.engine.commits.conflicts(t.begin, key) }

func (t *txn) Commit(ctx context.Context, d kv.Durability) error {
	if t.ended {
		panic("pebblekv: the transaction has ended")
	}
	err := t.tryCommit(ctx, d)
	if u, left := err.(*kv.Unsettled); left {
		return u.Then(func(err error) error { t.end(); return err })
	}
	t.end()
	return err
}

func (t *txn) tryCommit(ctx context.Context, d kv.Durability) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if t.engine.closed.Load() {
		return kv.ErrClosed
	}
	t.commit.Writes = &t.Writes
	if t.commit.TotalSize() > t.engine.options.MaxTxnBytes {
		return kv.ErrTooLarge
	}
	if err := t.engine.room.admitAny(); err != nil {
		return err
	}
	t.pending = pending{Commit: &t.commit, begin: t.begin, batch: t.engine.batch(&t.commit), txn: t}
	return t.engine.commit(ctx, &t.pending, d)
}

func (t *txn) Rollback() { t.end() }

// must: adding to a batch in memory fails only when the batch is already being committed.
func must(err error) {
	if err != nil {
		panic(err)
	}
}

// end gives the snapshot back; it may be called again.
func (t *txn) end() {
	if t.ended {
		return
	}
	t.ended = true
	t.engine.open.remove(t)
	if t.snapshot.view != nil {
		must(t.snapshot.Close())
	}
}

// look takes the snapshot.
func (t *txn) look() *snapshot {
	t.snapshot = snapshot{t.engine.commits.snapshots.acquire(t.engine.db, &t.engine.commits.sequence), t.engine.commits.rows}
	t.View.Snapshot = &t.snapshot
	return &t.snapshot
}

// blind is what a transaction without a snapshot reads, which takes one.
type blind txn

func (b *blind) Get(key []byte) ([]byte, error)          { return (*txn)(b).look().Get(key) }
func (b *blind) Probe(key []byte) ([]byte, error)        { return (*txn)(b).look().Probe(key) }
func (b *blind) GetMany(keys [][]byte) ([][]byte, error) { return (*txn)(b).look().GetMany(keys) }
func (b *blind) Ahead(keys, values [][]byte) (int, error) {
	return (*txn)(b).look().Ahead(keys, values)
}
func (b *blind) Counter(key []byte) (int64, error)             { return (*txn)(b).look().Counter(key) }
func (b *blind) NewIter(o kv.IterOptions) (kv.Iterator, error) { return (*txn)(b).look().NewIter(o) }

// openTxns lists the open transactions from oldest to youngest. One that reads an earlier view stands where it came: what is forgotten
// meanwhile that it would ask for is in conflict with it (claims.floor).
type openTxns struct {
	mu       sync.Mutex // guards the list and each member's links
	oldest   *txn
	youngest *txn
}

// add reads the sequence under the mutex, which keeps the list in its order.
func (o *openTxns) add(t *txn, sequence *atomic.Uint64) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.append(t, sequence.Load())
}

// addAt is add for one that began at a sequence before.
func (o *openTxns) addAt(t *txn, begin uint64) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.append(t, begin)
}

func (o *openTxns) append(t *txn, begin uint64) {
	t.begin = begin
	t.older = o.youngest
	if o.youngest == nil {
		o.oldest = t
	} else {
		o.youngest.younger = t
	}
	o.youngest = t
}

func (o *openTxns) remove(t *txn) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if t.older == nil {
		o.oldest = t.younger
	} else {
		t.older.younger = t.younger
	}
	if t.younger == nil {
		o.youngest = t.older
	} else {
		t.younger.older = t.older
	}
	t.older, t.younger = nil, nil
}

// horizon is the sequence that no open or coming transaction began before, but for those that read an earlier view.
func (o *openTxns) horizon(sequence *atomic.Uint64) uint64 {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.oldest == nil {
		return sequence.Load()
	}
	return o.oldest.begin
}
