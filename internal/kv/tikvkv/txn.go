package tikvkv

import (
	"container/list"
	"context"
	"sync"

	"github.com/ebbdb/ebb/internal/kv"
	"github.com/ebbdb/ebb/internal/kv/overlay"
)

// txn is a kv.Txn.
type txn struct {
	overlay.View
	engine   *Engine
	snapshot *snapshot // none yet in one that began blind and has not read
	begin    uint64    // the sequence when it began, before the snapshot was taken
	place    *list.Element
	commit   kv.Commit
	ctx      context.Context // of who reads; nil: it has none
	ended    bool
}

// Within is kv.Txn's.
func (t *txn) Within(ctx context.Context) {
	t.ctx = ctx
	if t.snapshot != nil {
		t.snapshot.Within(ctx)
	}
}

// MaxTxnBytes is the largest transaction.
const MaxTxnBytes = 64 << 20

// Begin is kv.Engine's.
func (e *Engine) Begin() (kv.Txn, error) {
	t, err := e.BeginBlind()
	if err != nil {
		return nil, err
	}
	if err := t.(*txn).look(); err != nil {
		t.Rollback()
		return nil, err
	}
	return t, nil
}

// BeginBlind is kv.Engine's.
func (e *Engine) BeginBlind() (kv.Txn, error) {
	if e.closed.Load() {
		return nil, kv.ErrClosed
	}
	if err := e.lease.held(); err != nil {
		return nil, unavailable(err)
	}
	t := &txn{engine: e}
	t.begin, t.place = e.open.add(&e.views)
	t.View.Snapshot = (*blind)(t)
	return t, nil
}

// BeginAt is kv.Engine's.
func (e *Engine) BeginAt(at kv.Snapshot) (kv.Txn, error) {
	if e.closed.Load() {
		return nil, kv.ErrClosed
	}
	s, ok := at.(*snapshot)
	if !ok || s.closed.Load() {
		return nil, errSnapshotClosed
	}
	t := &txn{engine: e, snapshot: s.share(), begin: s.view.sequence}
	t.place = e.open.addAt(t.begin)
	t.View.Snapshot = t.snapshot
	return t, nil
}

// look takes the snapshot.
func (t *txn) look() (err error) {
	if t.snapshot, err = t.engine.look(); err == nil {
		t.snapshot.Within(t.ctx)
		t.View.Snapshot = t.snapshot
	}
	return err
}

// Mean is kv.Txn's.
func (t *txn) Mean(m kv.Meaning) { t.commit.Meaning = m }

// Stamp is kv.Txn's.
func (t *txn) Stamp(ops ...kv.Op) { t.commit.Stamped = append(t.commit.Stamped, ops...) }

// Conflicts is kv.Txn's.
func (t *txn) Conflicts(key []byte) bool { return t.engine.commits.conflicts(t.begin, key) }

// Commit is kv.Txn's. It is durable when it returns, whatever was asked for.
func (t *txn) Commit(ctx context.Context, _ kv.Durability) error {
	if t.ended {
		panic("tikvkv: the transaction has ended")
	}
	defer t.end()
	if err := ctx.Err(); err != nil {
		return err
	}
	if t.engine.closed.Load() {
		return kv.ErrClosed
	}
	t.commit.Writes = &t.Writes
	if t.commit.TotalSize() > MaxTxnBytes {
		return kv.ErrTooLarge
	}
	if err := checkKeys(&t.commit); err != nil {
		return err
	}
	return t.engine.commits.commit(ctx, &pending{Commit: &t.commit, begin: t.begin})
}

// checkKeys refuses a key that TiKV would refuse, before anybody relies on the commit.
func checkKeys(c *kv.Commit) (err error) {
	check := func(op kv.Op) {
		if len(op.Key) > maxKeyBytes {
			err = errLongKey(len(op.Key))
		}
	}
	c.Each(check)
	for _, op := range c.Stamped {
		check(op)
	}
	return err
}

// Rollback is kv.Txn's.
func (t *txn) Rollback() { t.end() }

// end gives the snapshot back; it may be called again.
func (t *txn) end() {
	if t.ended {
		return
	}
	t.ended = true
	t.engine.open.remove(t.place)
	if t.snapshot != nil {
		t.snapshot.Close()
	}
}

// blind is what a transaction without a snapshot reads, which takes one.
type blind txn

func (b *blind) reader() (kv.Reader, error) {
	t := (*txn)(b)
	if err := t.look(); err != nil {
		return nil, err
	}
	return t.snapshot, nil
}

func (b *blind) Get(key []byte) ([]byte, error) {
	r, err := b.reader()
	if err != nil {
		return nil, err
	}
	return r.Get(key)
}

func (b *blind) Probe(key []byte) ([]byte, error) { return b.Get(key) }

func (b *blind) GetMany(keys [][]byte) ([][]byte, error) {
	r, err := b.reader()
	if err != nil {
		return nil, err
	}
	return r.GetMany(keys)
}

func (b *blind) Ahead(keys, values [][]byte) (int, error) {
	r, err := b.reader()
	if err != nil {
		return 0, err
	}
	return r.Ahead(keys, values)
}

func (b *blind) Counter(key []byte) (int64, error) {
	r, err := b.reader()
	if err != nil {
		return 0, err
	}
	return r.Counter(key)
}

func (b *blind) NewIter(o kv.IterOptions) (kv.Iterator, error) {
	r, err := b.reader()
	if err != nil {
		return nil, err
	}
	return r.NewIter(o)
}

// openTxns lists at which sequences the open transactions began, in the order in which they came. One that reads an earlier view is not waited
// for: what is forgotten meanwhile that it would ask for is in conflict with it (claims.Claims).
type openTxns struct {
	mu   sync.Mutex // guards list
	list list.List
}

// add reads the sequence under the mutex, which keeps the list in its order.
func (o *openTxns) add(v *views) (begin uint64, place *list.Element) {
	o.mu.Lock()
	defer o.mu.Unlock()
	begin = v.sequence()
	return begin, o.list.PushBack(begin)
}

func (o *openTxns) addAt(begin uint64) *list.Element {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.list.PushBack(begin)
}

func (o *openTxns) remove(place *list.Element) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.list.Remove(place)
}

// horizon is the sequence that no open or coming transaction began before, but for those that read an earlier view.
func (o *openTxns) horizon(v *views) uint64 {
	o.mu.Lock()
	defer o.mu.Unlock()
	if first := o.list.Front(); first != nil {
		return first.Value.(uint64)
	}
	return v.sequence()
}
