// Package garbage removes what dropped collections and indexes leave behind, and index builds that did not end well, in the background and
// without anybody being kept waiting. Whoever drops something notes it in the same commit (Item.Note); the note goes with the keys. It
// knows no catalogue: no number is used again, so nobody reads what it deletes. What is not noted any more it leaves alone: a commit took it into use
// whose writer was told that nobody knows what becomes of it, and gave up what he had made.
package garbage

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"log/slog"
	"sync"

	"github.com/ebbdb/ebb/internal/kv"
	"github.com/ebbdb/ebb/internal/storage/layout"
	"github.com/ebbdb/ebb/internal/storage/walk"
)

// Item is what one collection or index left behind.
type Item struct {
	kind   byte
	number uint32
}

// OfCollection is what a collection leaves behind, but for its indexes.
func OfCollection(number uint32) Item { return Item{layout.OfCollection, number} }

// OfIndex is what an index, or a side table, leaves behind.
func OfIndex(number uint32) Item { return Item{layout.OfIndex, number} }

// String is g as an error names it.
func (g Item) String() string { return fmt.Sprintf("%c%d", g.kind, g.number) }

// ReadNote reads the note of an item from what its key has behind the kind of all notes.
func ReadNote(key []byte) (g Item, err error) {
	if len(key) != 5 {
		return g, fmt.Errorf("a note of garbage has the key %x", key)
	}
	return Item{key[0], binary.BigEndian.Uint32(key[1:])}, nil
}

// Read are the items that are noted.
func Read(r kv.Reader) (left []Item, err error) {
	err = walk.Meta(r, layout.MetaGarbage, func(key, _ []byte) error {
		g, err := ReadNote(key)
		left = append(left, g)
		return err
	})
	return left, err
}

// Note makes g garbage for the next start.
func (g Item) Note(t kv.Txn) { t.Set(layout.GarbageKey(g.kind, g.number), nil) }

// Keep takes back a note.
func (g Item) Keep(t kv.Txn) { t.Delete(layout.GarbageKey(g.kind, g.number)) }

func (g Item) isNoted(r kv.Reader) (bool, error) {
	_, err := r.Get(layout.GarbageKey(g.kind, g.number))
	if errors.Is(err, kv.ErrNotFound) {
		return false, nil
	}
	return err == nil, err
}

// Ranges are the starts of all keys that belong to g.
func (g Item) Ranges() [][]byte {
	counters := layout.Numbered([]byte{layout.CounterPrefix}, g.kind, g.number)
	if g.kind == layout.OfCollection {
		return [][]byte{layout.Numbered(nil, layout.RecordPrefix, g.number), counters, layout.SequenceKey(g.number), layout.TombstonesKey(g.number)}
	}
	return [][]byte{
		layout.Numbered(nil, layout.IndexPrefix, g.number), layout.Numbered(nil, layout.IDPrefix, g.number), counters,
		layout.Numbered([]byte{layout.MetaPrefix}, layout.MetaMultikey, g.number),
	}
}

// Collector removes garbage, one piece after the other, on a goroutine that runs while there is some. What it does not
// get to, or fails at, is found again at the next start.
type Collector struct {
	engine kv.Engine
	log    *slog.Logger
	ctx    context.Context
	halt   context.CancelFunc
	mu     struct {
		sync.Mutex
		queue   []Item
		idle    *sync.Cond // no goroutine runs
		running bool
		stopped bool
	}
}

// Start makes a Collector. Stop it before the engine is closed.
func Start(engine kv.Engine, log *slog.Logger) *Collector {
	c := &Collector{engine: engine, log: log}
	c.ctx, c.halt = context.WithCancel(context.Background())
	c.mu.idle = sync.NewCond(&c.mu.Mutex)
	return c
}

// Add has the collector remove more, which is noted.
func (c *Collector) Add(found ...Item) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.mu.queue = append(c.mu.queue, found...)
	if len(c.mu.queue) > 0 && !c.mu.running && !c.mu.stopped {
		c.mu.running = true
		go c.run()
	}
}

func (c *Collector) run() {
	for {
		g, ok := c.take()
		if !ok {
			return
		}
		if err := c.remove(g); err != nil {
			c.log.Warn("what was dropped could not be removed; the next start tries again", "error", err)
		}
	}
}

func (c *Collector) take() (g Item, ok bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.mu.queue) == 0 || c.mu.stopped {
		c.mu.running = false
		c.mu.idle.Broadcast()
		return Item{}, false
	}
	g = c.mu.queue[0]
	c.mu.queue = c.mu.queue[1:]
	return g, true
}

// Wait returns when there is nothing to do.
func (c *Collector) Wait() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for c.mu.running {
		c.mu.idle.Wait()
	}
}

// Stop ends the work, and waits for its end.
func (c *Collector) Stop() {
	c.halt()
	c.mu.Lock()
	c.mu.stopped = true
	c.mu.Unlock()
	c.Wait()
}

// FewKeys is up to how many keys of a range are deleted one by one: cheaper than a range deletion, which every later
// iterator would have to look at.
const FewKeys = 512

// remove deletes all that belongs to g and then the note of it, if there is one.
func (c *Collector) remove(g Item) error {
	if err := c.awaitOrdered(); err != nil {
		return err
	}
	t, err := c.engine.Begin()
	if err != nil {
		return err
	}
	noted, err := g.isNoted(t)
	if !noted || err != nil {
		t.Rollback()
		return err
	}
	for _, start := range g.Ranges() {
		if err := c.removeRange(t, start); err != nil {
			t.Rollback()
			return err
		}
	}
	g.Keep(t)
	return t.Commit(c.ctx, kv.Buffered)
}

// awaitOrdered returns when it is known what has become of each commit that was on its way: none of them takes a note back later.
func (c *Collector) awaitOrdered() error {
	t, err := c.engine.BeginBlind()
	if err != nil {
		return err
	}
	return t.Commit(c.ctx, kv.Unsynced) // it writes nothing, and comes behind all others
}

func (c *Collector) removeRange(t kv.Txn, start []byte) error {
	few, err := DeleteFew(t, start)
	if few || err != nil {
		return err
	}
	return c.engine.DeleteRange(start, layout.After(start))
}

// DeleteFew deletes the keys that begin with start when they are few; ok is false when they are not.
func DeleteFew(t kv.Txn, start []byte) (ok bool, err error) {
	it, err := t.NewIter(kv.IterOptions{Lower: start, Upper: layout.After(start)})
	if err != nil {
		return false, err
	}
	defer it.Close()
	var keys [][]byte
	for it.Next() {
		if len(keys) == FewKeys {
			return false, nil
		}
		keys = append(keys, append([]byte(nil), it.Key()...))
	}
	for _, key := range keys {
		t.Delete(key)
	}
	return true, it.Err()
}
