package pebblekv

import (
	"context"
	"errors"
	"fmt"

	"github.com/cockroachdb/pebble/v2"

	"github.com/ebbdb/ebb/internal/kv/overlay"
)

// A compaction reads what it drops. To excise a range is to take its tables out of the store's list, and to cut off what
// others hold of it, unread: all that there is in the range goes, whatever was deleted and for whom. So nobody may see
// anything there, neither who reads as of before the deletion nor who comes now. A crash takes nothing back of it: Pebble does
// it behind what is in the range and in no table yet, in the log as well.

// watch says whether something was put in a range, guarded by committer.mu.
type watch struct {
	overlay.Range
	broken bool
}

// sees breaks the watch if t puts something in its range.
func (w *watch) sees(t commit) {
	if w == nil || w.broken {
		return
	}
	t.Each(func(op overlay.Op) { w.broken = w.broken || !op.Delete && w.Contains(op.Key) })
	for _, added := range t.Counters() {
		w.broken = w.broken || w.Contains(added.Key)
	}
}

// excise removes a range in which nothing is left since Pebble's sequence number after. It does nothing, and isEmpty is false,
// where something is left or put there meanwhile; isRead: somebody reads as of before the deletion.
func (c *committer) excise(r overlay.Range, after uint64) (isEmpty, isRead bool, err error) {
	c.tables.Lock()
	defer c.tables.Unlock()
	if s := c.db.Metrics().Snapshots; s.Count > 0 && uint64(s.EarliestSeqNum) < after {
		return false, true, nil
	}
	w := &watch{Range: r}
	c.setWatch(w)
	defer c.setWatch(nil)
	if empty, err := c.isEmpty(r); !empty || err != nil {
		return false, false, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if w.broken {
		return false, false, nil
	}
	if err := c.failure.get(); err != nil {
		return false, false, err
	}
	return true, false, c.cutOff(r)
}

func (c *committer) setWatch(w *watch) {
	c.mu.Lock()
	c.mu.watch = w
	c.mu.Unlock()
}

// isEmpty says whether a reader who comes now sees nothing in a range.
func (c *committer) isEmpty(r overlay.Range) (bool, error) {
	it, err := c.db.NewIter(&pebble.IterOptions{LowerBound: r.Start, UpperBound: r.End})
	if err != nil {
		return false, fmt.Errorf("pebblekv: excise: %w", err)
	}
	found := it.First()
	if err := errors.Join(it.Error(), it.Close()); err != nil {
		return false, fmt.Errorf("pebblekv: excise: %w", err)
	}
	return !found, nil
}

// cutOff excises. The caller holds mu. Pebble panics when it cannot write its log, as commits do then.
func (c *committer) cutOff(r overlay.Range) (err error) {
	defer func() {
		if p := recover(); p != nil {
			c.mu.stuck = true
			c.failure.set(fmt.Errorf("excise: %v", p))
			err = c.failure.get()
		}
	}()
	if err := c.db.Excise(context.Background(), pebble.KeyRange{Start: r.Start, End: r.End}); err != nil {
		return fmt.Errorf("pebblekv: excise: %w", err)
	}
	return nil
}

// deleteNothing writes the deletion of a key that is not there, if it is not.
func (c *committer) deleteNothing(key []byte) error {
	b := c.db.NewBatch()
	must(b.Delete(key, nil))
	c.mu.Lock()
	defer c.mu.Unlock()
	switch _, closer, err := c.db.Get(key); {
	case err == nil:
		return done(closer)
	case !errors.Is(err, pebble.ErrNotFound):
		return fmt.Errorf("pebblekv: get: %w", err)
	}
	if err := c.apply(b); err != nil {
		return err
	}
	closeBatch(b)
	return nil
}

// ingest takes over tables. Pebble panics when it cannot write its log, as commits do then.
func (c *committer) ingest(ctx context.Context, paths []string) (err error) {
	c.tables.Lock()
	defer c.tables.Unlock()
	defer func() {
		if r := recover(); r != nil {
			c.stick()
			c.failure.set(fmt.Errorf("take over tables: %v", r))
			err = c.failure.get()
		}
	}()
	return c.db.Ingest(ctx, paths)
}

func (c *committer) stick() {
	c.mu.Lock()
	c.mu.stuck = true
	c.mu.Unlock()
}
