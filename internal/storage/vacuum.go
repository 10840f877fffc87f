package storage

import (
	"cmp"
	"context"
	"slices"
	"sync"

	"github.com/ebbdb/ebb/internal/kv"
	"github.com/ebbdb/ebb/internal/storage/expiryorder"
	"github.com/ebbdb/ebb/internal/storage/layout"
	"github.com/ebbdb/ebb/internal/storage/walk"
)

// vacuuming is how far the removal of a collection's dead entries has come. A round goes through all of its indexes.
type vacuuming struct {
	mu sync.Mutex // held by who cleans
	round
	compaction *indexCompaction // or nil
	writes     int64            // commits to the collection when it was cleaned last
	contended  bool             // an index compaction was given up in this round
}

type round struct {
	begun []byte // the tombstones when the round began; nil between rounds
	index uint32 // where it is
	after []byte // the last key that was looked at; nil for the beginning
	dense bool   // many of the entries that were looked at last are dead
}

const (
	// denseShare: where at least one entry in so many is dead, stretches are written anew.
	denseShare = 4
	// vacuumedPerEntry is how many entries Vacuum looks at for each that it may remove.
	vacuumedPerEntry = 8
)

// Dead is how many records have been swept whose entries in the index on _id are still stored, and how many documents there
// are.
func (r *Reader) Dead() (dead, documents int64, err error) {
	documents, _, err = r.storedCounts()
	if err != nil || r.c.id == nil || !r.mayHaveTombstones() {
		return 0, documents, err
	}
	entries, err := r.Entries(r.c.id.Definition)
	return entries - documents, documents, err
}

// manyDead says whether a round over the collection begins with stretches that are written anew: entries deleted one by one
// make Pebble compact them away.
func (s *Store) manyDead(ctx context.Context, c *collection) (bool, error) {
	v, err := s.View(ctx)
	if err != nil {
		return false, err
	}
	defer v.Close()
	dead, documents, err := v.read(c).Dead()
	return dead >= s.fewSwept && dead*denseShare >= dead+documents, err
}

// Vacuum removes at most limit dead entries of a collection's indexes, and goes on where it stopped the last time. more is
// false when a round through all indexes has left nothing.
//
// Where few entries are dead they are deleted one by one, beside writers. Where many are, a stretch is deleted as a whole and
// the living are written again: a long one while nobody writes to the collection (indexCompaction), or else a short one, for which
// the lock is held exclusively while limit entries are read.
func (s *Store) Vacuum(ctx context.Context, collection uint32, limit int) (removed int, more bool, err error) {
	c := s.current.Load().collections[collection]
	if c == nil || !c.state.marked.isSet() {
		return 0, false, nil
	}
	at := &c.state.vacuuming
	at.mu.Lock()
	defer at.mu.Unlock()
	if at.begun == nil {
		if at.dense, err = s.manyDead(ctx, c); err != nil {
			return 0, false, err
		}
	}
	if at.dense {
		if removed, ok, err := s.rewrite(ctx, c, limit); ok || err != nil {
			return removed, true, err
		}
		if locked, err := s.lockToSweep(ctx, c); err != nil {
			return 0, false, err
		} else if locked {
			defer c.state.lock.release(true)
			return s.vacuumDense(ctx, c, limit)
		}
	}
	var next round
	err = s.Write(ctx, c.NS, WriteOptions{Durability: kv.Buffered}, func(w *Writer) (err error) {
		removed, more = 0, false
		if w.c.ID != collection {
			return nil
		}
		next = at.round
		next.after = slices.Clone(next.after)
		removed, more, err = w.clean(&next, limit, w.vacuumTable)
		return err
	})
	if err == nil {
		at.proceed(next, c.state.writes.Load())
	}
	return removed, more, err
}

// proceed takes over how far a transaction has come, which is one of so many commits to the collection.
func (c *vacuuming) proceed(next round, commits int64) {
	if next.begun == nil { // the round has ended
		c.contended = false
	}
	c.round, c.writes = next, commits
}

// vacuumDense is Vacuum for one who holds the collection's lock exclusively.
func (s *Store) vacuumDense(ctx context.Context, c *collection, limit int) (removed int, more bool, err error) {
	t, err := s.Begin(ctx)
	if err != nil {
		return 0, false, err
	}
	defer t.Rollback()
	w := t.writer(c)
	next := c.state.vacuuming.round
	next.after = slices.Clone(next.after)
	if removed, more, err = w.clean(&next, limit, w.vacuumStretch); err != nil {
		return 0, false, err
	}
	if err := t.Commit(ctx, kv.Buffered); err != nil {
		return 0, false, err
	}
	c.state.vacuuming.proceed(next, c.state.writes.Load())
	return removed, more, nil
}

// work is what is left to do in one transaction: entries to look at and to remove.
type work struct {
	looks, limit, removed int
}

func (l *work) isDone() bool { return l.looks <= 0 || l.removed >= l.limit }

func (w *Writer) clean(at *round, limit int, table func(*writtenTable, expiryorder.Tombstones, *round, *work) (ended bool, err error)) (removed int, more bool, err error) {
	ms, err := w.swept()
	if err != nil || len(ms) == 0 {
		if *at = (round{}); err == nil {
			w.deleteTombstones()
		}
		return 0, false, err
	}
	if at.begun == nil {
		*at = round{begun: ms.Encode()}
	}
	left := work{looks: limit * vacuumedPerEntry, limit: limit}
	for _, t := range w.byNumber() {
		if t.ID < at.index {
			continue
		}
		if t.ID > at.index {
			at.index, at.after = t.ID, nil
		}
		ended, err := table(t, ms, at, &left)
		if err != nil || !ended {
			return left.removed, true, err
		}
	}
	same := string(ms.Encode()) == string(at.begun)
	*at = round{dense: at.dense}
	if same {
		w.deleteTombstones()
	}
	return left.removed, !same, nil
}

func (w *Writer) deleteTombstones() {
	w.txn.kv.Delete(layout.TombstonesKey(w.c.ID))
	w.change.tombstones = tombstonesDeleted
}

// byNumber are the indexes in the order of their numbers, which one that was built anew is not in.
func (w *Writer) byNumber() (tables []*writtenTable) {
	for i := range w.tables {
		if t := &w.tables[i]; !t.building() {
			tables = append(tables, t)
		}
	}
	slices.SortFunc(tables, func(a, b *writtenTable) int { return cmp.Compare(a.ID, b.ID) })
	return tables
}

// entriesFrom opens a walk over an index behind the last key that was looked at.
func (r *Reader) entriesFrom(walk *walk.Keys, t *tableIndex, at *round) error {
	return walk.Open(r.view.ctx, r.view.reader, kv.IterOptions{Lower: entriesBehind(t, at.after), Upper: layout.After(layout.TableKey(nil, t.Definition))}, false, nil)
}

// entriesBehind is where the entries behind a key begin, or where all do.
func entriesBehind(t *tableIndex, key []byte) []byte {
	if key == nil {
		return layout.TableKey(nil, t.Definition)
	}
	return append(slices.Clone(key), 0)
}

// vacuumTable deletes dead entries one by one. It is done when it has come to the end of the index.
func (w *Writer) vacuumTable(t *writtenTable, ms expiryorder.Tombstones, at *round, left *work) (ended bool, err error) {
	var walk walk.Keys
	if err := w.entriesFrom(&walk, t.tableIndex, at); err != nil {
		return false, err
	}
	defer walk.Close()
	var room layout.IDRoom
	looked, removed := 0, 0
	for !left.isDone() && walk.Next() {
		left.looks--
		looked++
		key := walk.Key()
		at.after = append(at.after[:0], key...)
		dead, err := t.isDead(&walk, ms, &room)
		if err != nil {
			return false, err
		}
		if !dead {
			continue
		}
		if layout.HoldsIDs(t.Definition) { // whoever takes the key overwrites the entry
			w.claim(key)
		}
		w.txn.kv.Delete(key)
		t.surplus--
		left.removed++
		removed++
	}
	at.dense = removed >= looked/denseShare && int64(removed) >= w.txn.store.fewSwept
	return !left.isDone() && walk.Err() == nil, walk.Err()
}

// isDead says whether the entry that the walk stands on is.
func (t *writtenTable) isDead(walk *walk.Keys, ms expiryorder.Tombstones, room *layout.IDRoom) (bool, error) {
	value, err := walk.Value()
	if err != nil {
		return false, err
	}
	id, err := t.EntryID(walk.Key(), value, room)
	return err == nil && ms.Cover(id), err
}

// vacuumStretch deletes a stretch with all that is in it and writes the living again. Nobody else writes.
func (w *Writer) vacuumStretch(t *writtenTable, ms expiryorder.Tombstones, at *round, left *work) (ended bool, err error) {
	var walk walk.Keys
	low := entriesBehind(t.tableIndex, at.after)
	if err := w.entriesFrom(&walk, t.tableIndex, at); err != nil {
		return false, err
	}
	defer walk.Close()
	var room layout.IDRoom
	looked, removed := 0, 0
	for left.looks = min(left.looks, left.limit); left.looks > 0 && walk.Next(); left.looks-- {
		looked++
		dead, err := t.isDead(&walk, ms, &room)
		if err != nil {
			return false, err
		}
		at.after = append(at.after[:0], walk.Key()...)
		if dead {
			removed++
			continue
		}
		value, err := walk.Value()
		if err != nil {
			return false, err
		}
		w.txn.kv.Set(at.after, value)
	}
	if removed > 0 { // before all that is set, in whatever order
		w.txn.kv.DeleteRange(low, append(slices.Clone(at.after), 0))
	}
	t.surplus -= int64(removed)
	left.removed += removed
	at.dense = removed >= looked/denseShare
	return left.looks > 0 && walk.Err() == nil, walk.Err()
}
