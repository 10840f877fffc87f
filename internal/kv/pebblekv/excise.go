package pebblekv

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/cockroachdb/pebble/v2"

	"github.com/ebbdb/ebb/internal/clock"
	"github.com/ebbdb/ebb/internal/kv"
	"github.com/ebbdb/ebb/internal/kv/inspect"
)

// A compaction reads what it drops. To excise a range is to take its tables out of the store's list, and to cut off what
// others hold of it, unread: all that there is in the range goes, whatever was deleted and for whom. So nobody may see
// anything there, neither who reads as of before the deletion nor who comes now. A crash takes nothing back of it: Pebble does
// it behind what is in the range and in no table yet, in the log as well.

// watched is a range, and whether something was put there, guarded by committer.mu.
type watched struct {
	kv.Range
	broken bool
}

// watch is what is watched.
type watch []*watched

// sees breaks what t puts something in.
func (w watch) sees(t *pending) {
	for _, r := range w {
		if r.broken {
			continue
		}
		t.Each(func(op kv.Op) { r.broken = r.broken || !op.Delete && r.Contains(op.Key) })
		for _, op := range t.Stamped {
			r.broken = r.broken || r.Contains(op.Key)
		}
		for _, added := range t.Counters() {
			r.broken = r.broken || r.Contains(added.Key)
		}
	}
}

// excise removes those ranges in which nothing is left, and says which; it leaves one where something is left or put there
// meanwhile. isRead: the others are left because somebody reads as of a time before, when there may have been something, or
// because too much does not cease to be flushed. Whoever began since sees nothing.
//
// All are looked at before the first goes: then its memtable is flushed, and a look at what is dead there takes a processor of
// its own for as long.
func (c *committer) excise(list ...kv.Range) (gone []bool, isRead bool, err error) {
	c.tables.Lock()
	defer c.tables.Unlock()
	gone = make([]bool, len(list))
	w := make(watch, len(list))
	for i, r := range list {
		w[i] = &watched{Range: r}
	}
	c.setWatch(w)
	defer c.setWatch(nil)
	empty := make([]bool, len(list))
	for i, r := range list {
		if empty[i], err = c.isEmpty(r); err != nil {
			return gone, false, err
		}
	}
	if !slices.Contains(empty, true) {
		return gone, false, nil
	}
	if !c.isFree() { // for those who read as of when nothing was left nothing changes
		return gone, true, nil
	}
	for i, r := range w {
		if !empty[i] {
			continue
		}
		if !passes(c.isFlushing, flushTries) {
			return gone, true, nil
		}
		switch err = c.lookBeside(r.Range); {
		case err == nil:
			gone[i], err = c.exciseWatched(r)
		case errors.Is(err, errTableWent):
			return gone, true, nil // it is tried again, as where somebody reads still
		}
		if err != nil {
			return gone, false, err
		}
	}
	return gone, false, nil
}

// exciseWatched removes what was empty, if it still is.
func (c *committer) exciseWatched(r *watched) (gone bool, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if r.broken {
		return false, nil
	}
	if err := c.failure.writable(); err != nil {
		return false, err
	}
	err = c.cutOff(r.Range)
	return err == nil, err
}

const (
	// readTries is how often excise looks whether readers are done, flushTries whether a flush is, and passPause how long it
	// waits in between.
	readTries  = 20
	flushTries = 400
	passPause  = 5 * time.Millisecond
)

// passes says whether something is over, having looked so often.
func passes(goesOn func() bool, tries int) bool {
	for ; goesOn(); tries-- {
		if tries == 1 {
			return false
		}
		<-clock.Wall().NewTimer(passPause).C() // it is about real readers and disks
	}
	return true
}

// isFlushing says whether more memtables wait to be flushed than Pebble queues what it excises behind. Behind so many it would
// have everybody who commits, and who begins to read, wait for them.
func (c *committer) isFlushing() bool { return c.db.Metrics().MemTable.Count >= memTablesStopWrites }

// isRead says whether somebody reads as of before Pebble's sequence number next.
func (c *committer) isRead(next uint64) bool {
	s := c.db.Metrics().Snapshots
	return s.Count > 0 && uint64(s.EarliestSeqNum) < next
}

// isFree says whether nobody reads any more as of before now. Most who do are done at once.
func (c *committer) isFree() bool {
	next := c.behindAll()
	return passes(func() bool { return c.isRead(next) }, readTries)
}

// behindAll is the sequence number behind all that has been visible.
func (c *committer) behindAll() uint64 {
	c.mu.Lock() // whoever applies holds it until next is right
	defer c.mu.Unlock()
	return c.next.Load()
}

// setWatch watches from now on.
func (c *committer) setWatch(w watch) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.mu.watch = w
}

// isEmpty says whether a reader who comes now sees nothing in a range.
func (c *committer) isEmpty(r kv.Range) (bool, error) {
	it, err := c.db.NewIter(&pebble.IterOptions{LowerBound: r.Start, UpperBound: r.End})
	if err != nil {
		return false, reading("excise", err)
	}
	found := it.First()
	if err := errors.Join(it.Error(), it.Close()); err != nil {
		return false, reading("excise", err)
	}
	return !found, nil
}

// lookBeside reads, of each table that a range is to be cut out of, what ends on its one side and begins on its other. Pebble
// (v2.1.7, determineLeftTableBounds and determineRightTableBounds) takes what it cannot read there for empty, and drops all
// that the table holds on that side.
//
// A table may go while it is looked for, as a compaction has taken its place. Then all are looked at anew.
func (c *committer) lookBeside(r kv.Range) (err error) {
	for range readTries {
		if err = c.lookOnce(r); !errors.Is(err, errTableWent) {
			return err
		}
	}
	return err
}

// errTableWent says that a table was listed, could not be read, and is listed no more.
var errTableWent = errors.New("pebblekv: excise: a table went while it was looked for")

// isListed says whether the store still has a table for a part of the range.
func (c *committer) isListed(number uint64, r kv.Range) bool {
	levels, err := c.db.SSTables(pebble.WithKeyRangeFilter(r.Start, r.End))
	for _, tables := range levels {
		for i := range tables {
			if uint64(tables[i].BackingSSTNum) == number {
				return true
			}
		}
	}
	return err != nil
}

func (c *committer) lookOnce(r kv.Range) error {
	levels, err := c.db.SSTables(pebble.WithKeyRangeFilter(r.Start, r.End))
	if err != nil {
		return fmt.Errorf("pebblekv: list tables: %w", err)
	}
	for _, tables := range levels {
		for i := range tables {
			t := &tables[i]
			if r.Contains(t.Smallest.UserKey) && r.Contains(t.Largest.UserKey) {
				continue // which goes as a whole
			}
			number := uint64(t.BackingSSTNum)
			part := inspect.Part{File: number, Lower: t.Smallest.UserKey, Upper: after(t.Largest.UserKey)}
			if err := inspect.CheckBeside(c.disk, c.dir, part, r.Start, r.End); err != nil {
				if !c.isListed(number, r) { // its file goes in steps, and may be short by now
					return errTableWent
				}
				path := c.disk.PathJoin(c.dir, t.BackingSSTNum.String()+".sst")
				c.failure.damaged(pebble.DataCorruptionInfo{Path: path, Details: err})
				return fmt.Errorf("pebblekv: excise: %w: %s: %w", kv.ErrCorrupt, path, err)
			}
		}
	}
	return nil
}

// cutOff excises. The caller holds mu. Pebble panics when it cannot write its log, as commits do then.
func (c *committer) cutOff(r kv.Range) (err error) {
	defer func() {
		if p := recover(); p != nil {
			c.mu.stuck = true
			c.failure.set(fmt.Errorf("excise: %v", p))
			err = c.failure.get()
		}
	}()
	if err := c.db.Excise(context.Background(), pebble.KeyRange{Start: r.Start, End: r.End}); err != nil {
		return reading("excise", err)
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
		return reading("get", err)
	}
	if err := c.apply(b); err != nil {
		return err
	}
	closeBatch(b)
	return nil
}
