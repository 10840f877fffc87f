package pebblekv

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/cockroachdb/pebble/v2"

	"github.com/ebbdb/ebb/internal/clock"
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

// excise removes a range in which nothing is left. It does nothing, and isEmpty is false, where something is left or put there
// meanwhile; isRead: somebody reads as of a time before, when there may have been something. Whoever began since sees nothing.
func (c *committer) excise(r overlay.Range) (isEmpty, isRead bool, err error) {
	c.tables.Lock()
	defer c.tables.Unlock()
	w := &watch{Range: r}
	next := c.setWatch(w)
	defer c.setWatch(nil)
	if empty, err := c.isEmpty(r); !empty || err != nil {
		return false, false, err
	}
	for tries := 1; c.isRead(next); tries++ {
		if tries == readTries {
			return false, true, nil
		}
		<-clock.Wall().NewTimer(readPause).C() // it is about real readers, most of whom are done at once
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

const (
	// readTries is how often excise looks whether readers are done, and readPause how long it waits in between.
	readTries = 20
	readPause = 5 * time.Millisecond
)

// isRead says whether somebody reads as of before Pebble's sequence number next.
func (c *committer) isRead(next uint64) bool {
	s := c.db.Metrics().Snapshots
	return s.Count > 0 && uint64(s.EarliestSeqNum) < next
}

// setWatch watches from now on, and returns the sequence number behind all that was applied before.
func (c *committer) setWatch(w *watch) (next uint64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.mu.watch = w
	return c.next.Load()
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
