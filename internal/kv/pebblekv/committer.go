package pebblekv

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/ebbdb/ebb/internal/clock"
	"github.com/ebbdb/ebb/internal/kv"
	"github.com/ebbdb/ebb/internal/kv/claims"
	"github.com/ebbdb/ebb/internal/kv/inspect"
	"github.com/ebbdb/ebb/internal/kv/overlay"
	"github.com/ebbdb/ebb/internal/kv/rowcache"
)

// committer lets commits in one at a time; see the package comment.
type committer struct {
	db        *pebble.DB
	disk      vfs.FS
	dir       string
	commitKey []byte // where Commits store their number; nil: nowhere
	failure   *failure
	open      *openTxns
	sequence  atomic.Uint64 // of the youngest visible commit; moves under mu
	durable   atomic.Uint64 // of the youngest commit that a sync has covered, that began after it
	number    atomic.Uint64 // of the youngest visible Commit; moves under mu
	synced    atomic.Uint64 // the number of the youngest Commit that a sync has covered, that began after it
	member    atomic.Bool   // of a replica set; set under mu
	next      atomic.Uint64 // Pebble's sequence number behind all that was applied; moves under mu
	tables    sync.Mutex    // held before mu, while tables are taken over or excised
	tablesEnd sync.Cond     // of mu: told when mu.tables is false again
	snapshots snapshotCache
	rows      *rowcache.Cache
	group     groupCommit

	// mu orders commits. It is held while Pebble writes the log's buffer and the memtable, and so through a write stall,
	// but never while the disk syncs.
	mu struct {
		sync.Mutex
		claims   *claims.Claims
		counters map[string]*int64 // visible values, a cache
		sums     []int64           // of the counters of the commit that is on its way in
		watch    watch             // or nil
		observer kv.Observer       // or nil
		time     int64             // that no later Commit is before
		shown    int64             // that of the youngest visible Commit
		tables   bool              // tables are being taken over, and nobody else commits
		line     line              // of a member of a replica set
		stuck    bool              // Pebble panicked in a write and may hold its locks for good
	}
}

// maxCounters bounds the cache of counters; past it the cache starts anew.
const maxCounters = 1 << 16

// pending is a Commit on its way in.
type pending struct {
	*kv.Commit
	begin   uint64        // the committer's sequence when its transaction began
	batch   *pebble.Batch // nil: nothing to write
	ordered bool          // it came with its number and time, and conflicts with nothing
	txn     *txn          // the transaction, which ends when it is visible; or nil
	turn    *turn         // where it waits for the log of a replica set; or nil
}

func newCommitter(db *pebble.DB, disk vfs.FS, dir string, f *failure, open *openTxns, h *rowcache.Cache) *committer {
	c := &committer{db: db, disk: disk, dir: dir, failure: f, open: open, rows: h}
	c.group.clock, c.group.sync = clock.Wall(), c.syncLog
	c.snapshots.spared = make(chan struct{}, 1)
	c.mu.claims = claims.New()
	c.mu.counters = map[string]*int64{}
	c.tablesEnd.L = &c.mu
	c.mu.line.moved.L = &c.mu
	return c
}

// commit returns *kv.Unsettled where the caller's patience ends while t waits in the line.
func (c *committer) commit(ctx context.Context, t *pending, d kv.Durability) error {
	err, replicated := c.admitOrLineUp(ctx, t)
	if u, left := err.(*kv.Unsettled); left {
		return u.Then(func(err error) error { return c.finish(t, d, err, replicated) })
	}
	return c.finish(t, d, err, replicated)
}

// finish is the end of a commit whose outcome is err.
func (c *committer) finish(t *pending, d kv.Durability, err error, replicated bool) error {
	if t.batch == nil {
		return err
	}
	if err != nil {
		if errors.Is(err, kv.ErrConflict) {
			closeBatch(t.batch)
		}
		return err
	}
	c.snapshots.forget()
	if t.txn != nil {
		t.txn.end()
	}
	closeBatch(t.batch)
	if d == kv.Synced && !replicated {
		return c.syncCommit()
	}
	return nil
}

// syncCommit waits until what was applied is durable. When it fails that may or may not survive a restart, and others have seen
// it already: no later commit may build on it.
func (c *committer) syncCommit() error { return undetermined(c.sync()) }

// undetermined is what a sync's error is for a commit before it.
func undetermined(err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%w: %w", kv.ErrUndetermined, err)
}

// admit makes t visible or fails and leaves nothing behind. The caller holds mu.
func (c *committer) admit(t *pending) error {
	c.awaitTables()
	if t.batch != nil {
		if err := c.failure.writable(); err != nil {
			return err
		}
	}
	c.mu.claims.Forget(c.open.horizon(&c.sequence))
	if !t.ordered && c.mu.claims.Conflict(t.begin, t.Claims()) {
		return kv.ErrConflict
	}
	if err := c.addUp(t.Counters(), t.Ranges()); err != nil {
		return err
	}
	sequence := c.sequence.Load() + 1
	if t.batch != nil {
		if err := c.stamp(t.Commit, t.ordered); err != nil {
			return err
		}
		c.announce(t.Commit)
	}
	c.mu.claims.Record(sequence, t.Claims())
	return c.put(t, sequence)
}

// put makes t, which has its number and was announced, and whose counters are added up, visible as the commit numbered sequence. The caller
// holds mu.
func (c *committer) put(t *pending, sequence uint64) error {
	if t.batch != nil {
		c.appears(t.Commit)
		if err := c.putBatch(t, sequence); err != nil {
			return err
		}
	}
	for _, r := range t.Ranges() {
		c.dropCounters(r)
	}
	for i, added := range t.Counters() {
		c.cacheCounter(added.Key, c.mu.sums[i])
	}
	c.sequence.Store(sequence)
	if t.batch != nil {
		c.visible(t.Commit)
	}
	return nil
}

// putBatch completes the batch of t and applies it. The caller holds mu.
func (c *committer) putBatch(t *pending, sequence uint64) error {
	c.mu.watch.sees(t)
	ranges := t.Ranges()
	for _, r := range ranges {
		c.rows.ChangeRange(r, sequence)
	}
	if own, ok := t.Writes.(*overlay.Writes); ok { // see Engine.batch
		own.Each(func(op kv.Op) { c.note(op, ranges, sequence) })
	} else {
		t.Each(func(op kv.Op) { c.note(op, ranges, sequence) })
	}
	for i, added := range t.Counters() {
		setCounter(t.batch, added.Key, c.mu.sums[i])
	}
	for _, op := range t.Stamped {
		c.note(op, ranges, sequence)
		put(t.batch, op)
	}
	c.setNumber(t.batch, t.Commit)
	return c.apply(t.batch)
}

// conflicts says whether key was claimed since begin.
func (c *committer) conflicts(begin uint64, key []byte) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.mu.claims.Conflict(begin, [][]byte{key})
}

// stamp gives a Commit its number and its time, unless it came with them. The caller holds mu.
func (c *committer) stamp(t *kv.Commit, ordered bool) error {
	number, now := c.number.Load()+uint64(len(c.mu.line.waiting))+1, c.mu.time
	switch {
	case ordered && t.Number != number:
		return fmt.Errorf("%w: it is %d, and the next is %d", kv.ErrOrder, t.Number, number)
	case ordered: // its time is what the log says, here too where more has passed: a member that led may be ahead of the one that leads now
		c.mu.time = max(c.mu.time, t.Time)
		return nil
	case c.mu.observer != nil:
		now = c.mu.observer.Now()
	}
	t.Number, t.Time = number, max(now, c.mu.time)
	c.mu.time = t.Time
	return nil
}

// announce tells of a Commit that is about to be applied. The caller holds mu.
func (c *committer) announce(t *kv.Commit) {
	if c.mu.observer != nil {
		c.mu.observer.Ordered(t)
	}
}

// appears tells of a Commit that is being applied. The caller holds mu.
func (c *committer) appears(t *kv.Commit) {
	if c.mu.observer != nil {
		c.mu.observer.Appears(t)
	}
}

// visible tells of a Commit that was applied. The caller holds mu.
func (c *committer) visible(t *kv.Commit) {
	c.number.Store(t.Number)
	c.mu.shown = t.Time
	if c.mu.observer != nil {
		c.mu.observer.Visible(t)
	}
}

func (c *committer) observe(o kv.Observer) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.mu.observer = o
}

func (c *committer) last() (number uint64, millis int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.number.Load(), c.mu.shown
}

// note tells the row cache what the commit numbered sequence is about to write, beside the ranges that it deletes.
func (c *committer) note(op kv.Op, deletes []kv.Range, sequence uint64) {
	switch {
	case op.Cached:
		c.rows.Write(op.Key, op.Value, sequence)
	case !within(deletes, op.Key): // the others' values are from before the range was deleted
		c.rows.Change(op.Key, sequence)
	}
}

// apply makes the batch visible. The caller holds mu.
func (c *committer) apply(b *pebble.Batch) error {
	if err := c.failure.get(); err != nil {
		return err
	}
	if err := c.write(b, pebble.NoSync); err != nil {
		return fmt.Errorf("%w: %w", kv.ErrUndetermined, err)
	}
	return nil
}

// write hands the batch to Pebble; with Sync its sync is under way afterwards. The caller holds mu. What was written by a
// write that fails is not known: the store has failed then.
func (c *committer) write(b *pebble.Batch, o *pebble.WriteOptions) (err error) {
	// Pebble panics when it cannot write its log.
	defer func() {
		if r := recover(); r != nil {
			c.mu.stuck = true
			c.failure.set(fmt.Errorf("commit: %v", r))
			err = c.failure.get()
		}
	}()
	if o.Sync {
		err = c.db.ApplyNoSyncWait(b, o)
	} else {
		err = c.db.Apply(b, o)
	}
	if err != nil {
		c.failure.set(fmt.Errorf("commit: %w", err))
		return c.failure.get()
	}
	c.next.Store(uint64(b.SeqNum()) + uint64(b.Count()))
	return nil
}

// closeBatch gives a batch back to Pebble's pool. One whose write failed is left to the garbage collector.
func closeBatch(b *pebble.Batch) { must(b.Close()) }

// addUp turns what is added into the new values; counters in the ranges start anew.
func (c *committer) addUp(adds []kv.Count, ranges []kv.Range) error {
	c.mu.sums = c.mu.sums[:0]
	for _, added := range adds {
		sum := added.Delta
		if !within(ranges, added.Key) {
			value, err := c.counter(added.Key)
			if err != nil {
				return err
			}
			sum += value
		}
		c.mu.sums = append(c.mu.sums, sum)
	}
	return nil
}

func setCounter(b *pebble.Batch, key []byte, value int64) {
	op := b.SetDeferred(len(key), 8)
	copy(op.Key, key)
	binary.BigEndian.PutUint64(op.Value, uint64(value))
	must(op.Finish())
}

func within(ranges []kv.Range, key []byte) bool {
	return slices.ContainsFunc(ranges, func(r kv.Range) bool { return r.Contains(key) })
}

func (c *committer) counter(key []byte) (int64, error) {
	if value, cached := c.mu.counters[string(key)]; cached {
		return *value, nil
	}
	return counter(c.db, key)
}

func (c *committer) dropCounters(r kv.Range) {
	for key := range c.mu.counters {
		if string(r.Start) <= key && key < string(r.End) {
			delete(c.mu.counters, key)
		}
	}
}

func (c *committer) cacheCounter(key []byte, value int64) {
	if cached, ok := c.mu.counters[string(key)]; ok {
		*cached = value
		return
	}
	if len(c.mu.counters) >= maxCounters {
		clear(c.mu.counters)
	}
	c.mu.counters[string(key)] = &value
}

// sync makes durable what was applied before; many share one sync.
func (c *committer) sync() error { return c.group.wait() }

// emptyRecord is a batch that changes nothing. What it says is for those who read the log when it is damaged.
func (c *committer) emptyRecord(says string) *pebble.Batch {
	b := c.db.NewBatch()
	must(b.LogData([]byte(says), nil))
	return b
}

// syncLog syncs the log up to an empty record. One that follows another proves that all before that was on stable storage.
func (c *committer) syncLog() error {
	b := c.emptyRecord(inspect.Mark)
	number, covered := c.number.Load(), c.sequence.Load()
	if err := c.writeSync(b); err != nil {
		return err
	}
	if err := b.SyncWait(); err != nil {
		c.failure.set(fmt.Errorf("sync: %w", err))
		return c.failure.get()
	}
	c.durable.Store(covered) // one sync at a time
	c.synced.Store(number)
	closeBatch(b)
	return nil
}

func (c *committer) writeSync(b *pebble.Batch) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if err := c.failure.get(); err != nil {
		return err
	}
	return c.write(b, pebble.Sync)
}

func (c *committer) isStuck() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.mu.stuck
}
