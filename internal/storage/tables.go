package storage

import (
	"bytes"
	"slices"

	"github.com/ebbdb/ebb/internal/index"
	"github.com/ebbdb/ebb/internal/kv"
	"github.com/ebbdb/ebb/internal/storage/duplicate"
	"github.com/ebbdb/ebb/internal/storage/indexwrite"
	"github.com/ebbdb/ebb/internal/storage/layout"
	"github.com/ebbdb/ebb/internal/storage/meaning"
)

// makeRoom refuses the fresh keys that are taken by another record, deletes the expired ones that take them, and claims
// them. self is the record that they are for, nil when it is new.
func (w *Writer) makeRoom(self RecordID) error {
	if err := w.entries.EachTaken(func(t *indexwrite.Table, keyString, typeBits []byte) error {
		return w.makeRoomFor(t.Definition, keyString, typeBits, self)
	}); err != nil {
		return err
	}
	for _, rec := range w.inTheWay { // when nothing is refused any more
		if err := w.removeAside(rec); err != nil {
			return err
		}
	}
	return nil
}

// isInTheWay takes note of an expired record that goes to make room.
func (w *Writer) isInTheWay(rec Record) {
	for _, o := range w.inTheWay {
		if bytes.Equal(o.ID, rec.ID) {
			return
		}
	}
	w.inTheWay = append(w.inTheWay, rec.Clone())
}

func (w *Writer) makeRoomFor(d *index.Definition, keyString, typeBits []byte, self RecordID) error {
	free, err := w.isNew(d, keyString)
	if err != nil {
		return err
	}
	if !free {
		err = w.evict(d, keyString, typeBits, self)
	}
	if err != nil {
		return err
	}
	w.claim(append(layout.TableKey(w.key[:0], d), keyString...))
	return nil
}

// isNew says whether an _id's key string is known to be free, and notes that it is about to be taken.
func (w *Writer) isNew(d *index.Definition, keyString []byte) (bool, error) {
	if w.c.id == nil || d != w.c.id.Definition {
		return false, nil
	}
	return w.c.state.own.IsNew(keyString, (*idEntries)(w.Reader))
}

// idEntries is a Reader as ownership asks it.
type idEntries Reader

// Largest is the largest key of the index on _id.
func (e *idEntries) Largest() ([]byte, error) {
	prefix := layout.TableKey(nil, e.c.id.Definition)
	it, err := e.view.reader.NewIter(kv.IterOptions{Lower: prefix, Upper: layout.After(prefix)})
	if err != nil {
		return nil, err
	}
	defer it.Close()
	if !it.Last() {
		return nil, it.Err()
	}
	return bytes.Clone(it.Key()[len(prefix):]), nil // the iterator's memory is somebody else's once it is closed
}

// evict refuses a key if another record has it; an expired one that does is in the way.
func (w *Writer) evict(d *index.Definition, keyString, typeBits []byte, self RecordID) error {
	ids, err := w.holders(d, keyString)
	if err != nil {
		return err
	}
	for _, id := range ids {
		if bytes.Equal(id, self) {
			continue
		}
		rec, there, err := w.stored(id)
		switch {
		case err != nil:
			return err
		case !there:
			if err := w.takeDead(d, keyString, id); err != nil {
				return err
			}
			continue
		case !w.hidden(&rec):
			return duplicate.Key(w.c.Collection, d, keyString, typeBits)
		}
		w.isInTheWay(rec)
	}
	return nil
}

// takeDead makes sure that an entry without a record is what a sweep has left, and removes it where it is in the way.
func (w *Writer) takeDead(d *index.Definition, keyString []byte, id RecordID) error {
	dead, err := w.isDead(id)
	switch {
	case err != nil:
		return err
	case !dead:
		return duplicate.BrokenIndex(w.c.Collection, d, id)
	case layout.HoldsIDs(d):
		w.key = append(layout.TableKey(w.key[:0], d), keyString...)
		w.claim(w.key)
		if w.txn.statements != nil && !w.txn.isThere(w.key) {
			return w.txn.statements.failed // it was vacuumed since the transaction began
		}
		w.txn.kv.Delete(w.key)
		w.entries.Removed(d.ID, 1)
	}
	return nil
}

// removeAside deletes a record in the middle of computing another one's change.
func (w *Writer) removeAside(rec Record) error {
	aside := &Writer{}
	aside.begin(w.txn, w.c)
	if err := aside.remove(meaning.DocumentExpired, rec); err != nil {
		return err
	}
	w.claimed |= aside.claimed
	w.documents += aside.documents
	w.bytes += aside.bytes
	aside.change.EachDocument(w.change.Note)
	w.entries.Merge(&aside.entries)
	return nil
}

// holders are the records that have a key string in an index.
func (w *Writer) holders(d *index.Definition, keyString []byte) ([]RecordID, error) {
	w.key = append(layout.TableKey(w.key[:0], d), keyString...)
	if layout.HoldsIDs(d) {
		id, err := w.taker(w.key)
		if id == nil || err != nil {
			return nil, err
		}
		return []RecordID{id}, nil
	}
	start := slices.Clone(w.key)
	it, err := w.view.reader.NewIter(kv.IterOptions{Lower: start, Upper: layout.After(start)})
	if err != nil {
		return nil, err
	}
	defer it.Close()
	var ids []RecordID
	var entry IndexEntry
	var room layout.IDRoom
	for it.Next() {
		value, err := it.Value()
		if err != nil {
			return nil, err
		}
		if err := w.c.index(d.ID).ReadEntry(&entry, it.Key(), value, &room); err != nil {
			return nil, err
		}
		if bytes.Equal(entry.Key, keyString) {
			ids = append(ids, entry.RecordID.Clone())
		}
	}
	return ids, it.Err()
}
