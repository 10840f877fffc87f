package storage

import (
	"errors"
	"maps"
	"slices"

	"github.com/ebbdb/ebb/internal/catalog"
	"github.com/ebbdb/ebb/internal/kv"
	"github.com/ebbdb/ebb/internal/mongoerr"
	"github.com/ebbdb/ebb/internal/storage/layout"
	"github.com/ebbdb/ebb/internal/storage/walk"
)

const (
	// maxWaiting bounds the records that wait for a key of a unique index that another one has: with more the build fails
	// at once.
	maxWaiting = 1000
	// maxSkipped bounds the hidden records whose keys cannot be computed.
	maxSkipped = 1000
)

// waiting are the records that have a key of a unique index which another one holds, by key string. Until the end of the
// build either may go.
type waiting struct {
	byKey map[string][]holder
	n     int
}

type holder struct {
	id       RecordID
	typeBits []byte
}

// wait adds a record that has the key, beside the one in the table.
func (t *buildTable) wait(c *catalog.Collection, keyString []byte, id RecordID, typeBits []byte) error {
	t.unwait(keyString, id)
	if t.waiting.n == maxWaiting {
		return duplicateKey(c, t.Definition, keyString, typeBits)
	}
	if t.waiting.byKey == nil {
		t.waiting.byKey = map[string][]holder{}
	}
	t.waiting.byKey[string(keyString)] = append(t.waiting.byKey[string(keyString)], holder{id.Clone(), slices.Clone(typeBits)})
	t.waiting.n++
	return nil
}

func (t *buildTable) unwait(keyString []byte, id RecordID) {
	all := t.waiting.byKey[string(keyString)]
	left := slices.DeleteFunc(all, func(h holder) bool { return h.id.IsSame(id) })
	t.waiting.n -= len(all) - len(left)
	if len(left) == 0 {
		delete(t.waiting.byKey, string(keyString))
		return
	}
	t.waiting.byKey[string(keyString)] = left
}

func (t *buildTable) firstWaiting(keyString []byte) (holder, bool) {
	all := t.waiting.byKey[string(keyString)]
	if len(all) == 0 {
		return holder{}, false
	}
	return all[0], true
}

// skippedRecord is a record whose keys in a table could not be computed.
type skippedRecord struct {
	table *buildTable
	id    RecordID
}

// settle brings the tables up to date while the lock is held exclusively, and decides what was left open.
func (b *Build) settle(c *collection) error {
	for {
		closed := b.generation
		if b.generation++; b.generation == layout.SkippedGeneration {
			return aborted("documents expire without end")
		}
		if _, err := b.catchUp(closed, directly); err != nil {
			return err
		}
		cleared, err := b.clearHidden(c)
		if err != nil {
			return err
		}
		if !cleared {
			return b.decide(c)
		}
	}
}

// clearHidden deletes the expired, hidden ones among the records that are in the way.
func (b *Build) clearHidden(c *collection) (cleared bool, err error) {
	if b.how.Keep {
		return false, nil
	}
	open, err := b.inTheWay()
	if err != nil || len(open) == 0 {
		return false, err
	}
	return b.removeHidden(c, open)
}

// removeHidden deletes those of the records that are hidden. While expiry is held it fails when there are any.
func (b *Build) removeHidden(c *collection, ids []RecordID) (cleared bool, err error) {
	txn, err := b.store.Begin(b.ctx)
	if err != nil {
		return false, err
	}
	defer txn.Rollback()
	w := txn.writer(c)
	for _, id := range ids {
		rec, there, err := w.stored(id)
		if err != nil {
			return false, err
		}
		if there && w.hidden(rec) {
			if held := b.store.held(c); held != "" && !b.how.Force {
				return false, mongoerr.New(mongoerr.IllegalOperation, "expiry is held (%s), and documents of %s that have expired and are hidden are in the "+
					"way of an index: force: true deletes them", held, c.NS)
			}
			if err := w.remove(DocumentExpired, rec.Clone()); err != nil {
				return false, err
			}
			cleared = true
		}
	}
	return cleared, txn.Commit(b.ctx, kv.Buffered)
}

// inTheWay are the hidden records that share a key of a unique table, and those without keys; none when the build fails without them,
// too.
func (b *Build) inTheWay() (ids []RecordID, err error) {
	v, r, err := b.view()
	if err != nil {
		return nil, err
	}
	defer v.Close()
	for _, t := range b.tables {
		for keyString, holders := range t.waiting.byKey {
			first, err := r.holder(t.EntryKey(nil, []byte(keyString), nil))
			if err != nil {
				return nil, err
			}
			all := []RecordID{first}
			for _, h := range holders {
				all = append(all, h.id)
			}
			hidden, err := r.hiddenAmong(all)
			if err != nil || len(all)-len(hidden) > 1 {
				return nil, err
			}
			ids = append(ids, hidden...)
		}
	}
	err = b.eachSkipped(v, func(s skippedRecord) error { ids = append(ids, s.id); return nil })
	return ids, err
}

// hiddenAmong are those of the records that are hidden, or not there any more.
func (r *Reader) hiddenAmong(ids []RecordID) (hidden []RecordID, err error) {
	for _, id := range ids {
		rec, there, err := r.stored(id)
		if err != nil {
			return nil, err
		}
		if !there || r.hidden(rec) {
			hidden = append(hidden, id)
		}
	}
	return hidden, nil
}

// decide fails when a record has no keys, or shares one that is unique.
func (b *Build) decide(c *collection) error {
	if err := b.decideSkipped(); err != nil {
		return err
	}
	for _, t := range b.tables {
		for _, keyString := range slices.Sorted(maps.Keys(t.waiting.byKey)) {
			return duplicateKey(c.Collection, t.Definition, []byte(keyString), t.waiting.byKey[keyString][0].typeBits)
		}
	}
	return nil
}

func (b *Build) decideSkipped() error {
	v, r, err := b.view()
	if err != nil {
		return err
	}
	defer v.Close()
	return b.eachSkipped(v, func(s skippedRecord) error {
		rec, there, err := r.stored(s.id)
		if err != nil || !there {
			return err
		}
		return s.table.Keys(rec.Doc, &s.table.keys)
	})
}

// eachSkipped calls f for each record whose keys somebody could not compute at some time.
func (b *Build) eachSkipped(v *View, f func(skippedRecord) error) error {
	for _, s := range b.skipped {
		if err := f(s); err != nil {
			return err
		}
	}
	for _, t := range b.tables {
		if t.side == 0 {
			continue
		}
		var w walk.Keys
		if err := w.OpenRange(v.ctx, v.reader, layout.SideKey(nil, t.side, layout.SkippedGeneration)); err != nil {
			return err
		}
		var err error
		for err == nil && w.Next() {
			err = f(skippedRecord{t, RecordID(w.Key()[layout.SideKeyLength:]).Clone()})
		}
		if err := errors.Join(err, w.Err(), w.Close()); err != nil {
			return err
		}
	}
	return nil
}
