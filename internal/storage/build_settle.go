package storage

import (
	"errors"

	"github.com/ebbdb/ebb/internal/kv"
	"github.com/ebbdb/ebb/internal/mongoerr"
	"github.com/ebbdb/ebb/internal/storage/layout"
	"github.com/ebbdb/ebb/internal/storage/meaning"
)

// maxSkipped bounds the hidden records whose keys cannot be computed.
const maxSkipped = 1000

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
			return b.decide()
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
			if err := w.remove(meaning.DocumentExpired, rec.Clone()); err != nil {
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
		fails := errors.New("it fails without them, too")
		err := t.EachWaiting(func(keyString []byte, waiting []RecordID) error {
			first, err := r.holder(t.EntryKey(nil, keyString, nil))
			if err != nil {
				return err
			}
			all := append([]RecordID{first}, waiting...)
			hidden, err := r.hiddenAmong(all)
			if err == nil && len(all)-len(hidden) > 1 {
				err = fails
			}
			ids = append(ids, hidden...)
			return err
		})
		switch {
		case errors.Is(err, fails):
			return nil, nil
		case err != nil:
			return nil, err
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
func (b *Build) decide() error {
	if err := b.decideSkipped(); err != nil {
		return err
	}
	for _, t := range b.tables {
		if err := t.CheckWaiting(); err != nil {
			return err
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
		return s.table.Compute(rec.Doc)
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
		err := t.EachSkipped(v.ctx, v.reader, func(id RecordID) error { return f(skippedRecord{t, id}) })
		if err != nil {
			return err
		}
	}
	return nil
}
