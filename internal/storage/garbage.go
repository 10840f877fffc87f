package storage

import (
	"context"
	"sync"

	"github.com/ebbdb/ebb/internal/kv"
	"github.com/ebbdb/ebb/internal/storage/layout"
)

// garbage is what a dropped collection or index left behind, or an index build that did not end well.
type garbage struct {
	kind   byte
	number uint32
}

// ranges are the starts of all keys that belong to g.
func (g garbage) ranges() [][]byte {
	counters := layout.Numbered([]byte{layout.CounterPrefix}, g.kind, g.number)
	if g.kind == layout.OfCollection {
		return [][]byte{layout.Numbered(nil, layout.RecordPrefix, g.number), counters, layout.SequenceKey(g.number), layout.TombstonesKey(g.number)}
	}
	return [][]byte{
		layout.Numbered(nil, layout.IndexPrefix, g.number), layout.Numbered(nil, layout.IDPrefix, g.number), counters,
		layout.Numbered([]byte{layout.MetaPrefix}, layout.MetaMultikey, g.number),
	}
}

// collector removes garbage, one piece after the other, on a goroutine that runs while there is some. What it does not
// get to, or fails at, is found again at the next start.
type collector struct {
	store *Store
	ctx   context.Context
	halt  context.CancelFunc
	mu    struct {
		sync.Mutex
		queue   []garbage
		idle    *sync.Cond // no goroutine runs
		running bool
		stopped bool
	}
}

func startCollector(s *Store) *collector {
	c := &collector{store: s}
	c.ctx, c.halt = context.WithCancel(context.Background())
	c.mu.idle = sync.NewCond(&c.mu.Mutex)
	return c
}

func (c *collector) add(found ...garbage) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.mu.queue = append(c.mu.queue, found...)
	if len(c.mu.queue) > 0 && !c.mu.running && !c.mu.stopped {
		c.mu.running = true
		go c.run()
	}
}

func (c *collector) run() {
	for {
		g, ok := c.take()
		if !ok {
			return
		}
		if err := c.store.remove(c.ctx, g); err != nil {
			c.store.options.Logger.Warn("what was dropped could not be removed; the next start tries again", "error", err)
		}
	}
}

func (c *collector) take() (g garbage, ok bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.mu.queue) == 0 || c.mu.stopped {
		c.mu.running = false
		c.mu.idle.Broadcast()
		return garbage{}, false
	}
	g = c.mu.queue[0]
	c.mu.queue = c.mu.queue[1:]
	return g, true
}

// wait returns when there is nothing to do.
func (c *collector) wait() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for c.mu.running {
		c.mu.idle.Wait()
	}
}

func (c *collector) stop() {
	c.halt()
	c.mu.Lock()
	c.mu.stopped = true
	c.mu.Unlock()
	c.wait()
}

// fewKeys is up to how many keys of a range are deleted one by one: cheaper than a range deletion, which every later
// iterator would have to look at.
const fewKeys = 512

// remove deletes all that belongs to g and then the note of it.
func (s *Store) remove(ctx context.Context, g garbage) error {
	t, err := s.engine.Begin()
	if err != nil {
		return err
	}
	for _, start := range g.ranges() {
		if err := s.removeRange(t, start); err != nil {
			t.Rollback()
			return err
		}
	}
	t.Delete(layout.GarbageKey(g.kind, g.number))
	return t.Commit(ctx, kv.Buffered)
}

func (s *Store) removeRange(t kv.Txn, start []byte) error {
	few, err := deleteFew(t, start)
	if few || err != nil {
		return err
	}
	return s.engine.DeleteRange(start, layout.After(start))
}

// deleteFew deletes the keys that begin with start when they are few; ok is false when they are not.
func deleteFew(t kv.Txn, start []byte) (ok bool, err error) {
	it, err := t.NewIter(kv.IterOptions{Lower: start, Upper: layout.After(start)})
	if err != nil {
		return false, err
	}
	defer it.Close()
	var keys [][]byte
	for it.Next() {
		if len(keys) == fewKeys {
			return false, nil
		}
		keys = append(keys, append([]byte(nil), it.Key()...))
	}
	for _, key := range keys {
		t.Delete(key)
	}
	return true, it.Err()
}
