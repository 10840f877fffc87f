package pebblekv

import (
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/cockroachdb/pebble/v2"

	"github.com/ebbdb/ebb/internal/kv"
	"github.com/ebbdb/ebb/internal/kv/overlay"
)

// committer lets commits in one at a time; see the package comment.
type committer struct {
	db       *pebble.DB
	failure  *failure
	open     *openTxns
	sequence atomic.Uint64 // of the youngest visible commit; moves under mu
	latest   latest
	hot      *hot

	// mu orders commits. It is held while Pebble writes the log's buffer and the memtable, and so through a write stall,
	// but never while the disk syncs.
	mu struct {
		sync.Mutex
		claims   *claims
		counters map[string]*int64 // visible values, a cache
		sums     []int64           // of the counters of the commit that is on its way in
		stuck    bool              // Pebble panicked in a write and may hold its locks for good
	}
}

// maxCounters bounds the cache of counters; past it the cache starts anew.
const maxCounters = 1 << 16

// commit is one transaction's effect on its way in.
type commit struct {
	*txn
	batch *pebble.Batch // nil: nothing to write
}

func newCommitter(db *pebble.DB, f *failure, open *openTxns, h *hot) *committer {
	c := &committer{db: db, failure: f, open: open, hot: h}
	c.mu.claims = newClaims()
	c.mu.counters = map[string]*int64{}
	return c
}

func (c *committer) commit(t commit, d kv.Durability) error {
	err := c.admit(t, d)
	if t.batch == nil {
		return err
	}
	if err != nil {
		if errors.Is(err, kv.ErrConflict) {
			closeBatch(t.batch)
		}
		return err
	}
	c.latest.forget()
	t.end()
	if d == kv.Synced {
		return c.wait(t.batch)
	}
	closeBatch(t.batch)
	return nil
}

// admit makes t visible or fails and leaves nothing behind.
func (c *committer) admit(t commit, d kv.Durability) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.mu.claims.forget(c.open.horizon(&c.sequence))
	if c.mu.claims.conflict(t.begin, t.Claims()) {
		return kv.ErrConflict
	}
	if err := c.addUp(t.Counters(), t.Ranges()); err != nil {
		return err
	}
	sequence := c.sequence.Load() + 1
	if t.batch != nil {
		for _, r := range t.Ranges() {
			c.hot.changeRange(r, sequence)
		}
		t.Each(func(op overlay.Op) { c.hot.change(op.Key, sequence) })
		for i, added := range t.Counters() {
			setCounter(t.batch, added.Key, c.mu.sums[i])
		}
		if err := c.apply(t.batch, d); err != nil {
			return err
		}
	}
	for _, r := range t.Ranges() {
		c.dropCounters(r)
	}
	for i, added := range t.Counters() {
		c.cacheCounter(added.Key, c.mu.sums[i])
	}
	c.mu.claims.record(sequence, t.Claims())
	c.sequence.Store(sequence)
	return nil
}

// apply makes the batch visible; with Synced its sync is under way afterwards. The caller holds mu.
func (c *committer) apply(b *pebble.Batch, d kv.Durability) (err error) {
	if err := c.failure.get(); err != nil {
		return err
	}
	// Pebble panics when it cannot write its log. What it wrote before that is not known.
	defer func() {
		if r := recover(); r != nil {
			c.mu.stuck = true
			c.failure.set(fmt.Errorf("commit: %v", r))
			err = fmt.Errorf("%w: %w", kv.ErrUndetermined, c.failure.get())
		}
	}()
	if d == kv.Synced {
		err = c.db.ApplyNoSyncWait(b, pebble.Sync)
	} else {
		err = c.db.Apply(b, pebble.NoSync)
	}
	if err != nil {
		c.failure.set(fmt.Errorf("commit: %w", err))
		return fmt.Errorf("%w: %w", kv.ErrUndetermined, c.failure.get())
	}
	return nil
}

// wait waits for the sync of a batch that apply has let in. When it fails the batch may or may not survive a restart, and
// others have seen it already: no later commit may build on that.
func (c *committer) wait(b *pebble.Batch) error {
	if err := b.SyncWait(); err != nil {
		c.failure.set(fmt.Errorf("sync: %w", err))
		return fmt.Errorf("%w: %w", kv.ErrUndetermined, c.failure.get())
	}
	closeBatch(b)
	return nil
}

// closeBatch gives a batch back to Pebble's pool. One whose write failed is left to the garbage collector.
func closeBatch(b *pebble.Batch) { must(b.Close()) }

// addUp turns what is added into the new values; counters in the ranges start anew.
func (c *committer) addUp(adds []overlay.Count, ranges []overlay.Range) error {
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

func within(ranges []overlay.Range, key []byte) bool {
	return slices.ContainsFunc(ranges, func(r overlay.Range) bool { return r.Contains(key) })
}

func (c *committer) counter(key []byte) (int64, error) {
	if value, cached := c.mu.counters[string(key)]; cached {
		return *value, nil
	}
	return counter(c.db, key)
}

func (c *committer) dropCounters(r overlay.Range) {
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

func (c *committer) deleteRange(start, end []byte) error {
	b := c.db.NewBatch()
	must(b.DeleteRange(start, end, nil))
	r := overlay.Range{Start: start, End: end}
	return c.write(b, func(sequence uint64) { c.hot.changeRange(r, sequence) }, func() { c.dropCounters(r) })
}

// loaded counts tables that the store has taken over as a commit, so that whoever comes next does not share a view
// without them.
func (c *committer) loaded() {
	c.mu.Lock()
	c.sequence.Store(c.sequence.Load() + 1)
	c.mu.Unlock()
	c.latest.forget()
}

// sync makes durable what was applied before: the log is synced up to an empty record.
func (c *committer) sync() error {
	b := c.db.NewBatch()
	must(b.LogData(nil, nil))
	return c.write(b, func(uint64) {}, func() {})
}

// write applies a batch that is no transaction's and waits until it is durable. before is told the commit's number.
func (c *committer) write(b *pebble.Batch, before func(sequence uint64), applied func()) error {
	c.mu.Lock()
	sequence := c.sequence.Load() + 1
	before(sequence)
	err := c.apply(b, kv.Synced)
	if err == nil {
		applied()
		c.sequence.Store(sequence)
	}
	c.mu.Unlock()
	if err != nil {
		return err
	}
	c.latest.forget()
	return c.wait(b)
}

func (c *committer) isStuck() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.mu.stuck
}
