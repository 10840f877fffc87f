package storage

import (
	"bytes"
	"slices"

	"github.com/ebbdb/ebb/internal/index"
	"github.com/ebbdb/ebb/internal/kv"
	"github.com/ebbdb/ebb/internal/storage/duplicate"
	"github.com/ebbdb/ebb/internal/storage/layout"
	"github.com/ebbdb/ebb/internal/storage/meaning"
	"github.com/ebbdb/ebb/internal/storage/multikey"
)

// moveEntries changes an index's entries from those of old to those of rec; either may be no record.
func (w *Writer) moveEntries(t *writtenTable, old, rec Record) {
	if t.Kind == index.Deadline {
		w.moveDeadline(t, old, rec)
		return
	}
	if !t.touched {
		return
	}
	moved := !bytes.Equal(old.ID, rec.ID)
	i, j := 0, 0
	for i < t.stale.Count() || j < t.fresh.Count() {
		switch order := index.CompareKeys(&t.stale, i, &t.fresh, j); {
		case order < 0:
			w.deleteEntry(t, t.stale.Key(i), old.ID)
			w.keys.Deleted++
			i++
		case order > 0:
			w.putEntry(t, j, rec.ID)
			w.keys.Inserted++
			j++
		default:
			if moved {
				w.deleteEntry(t, t.stale.Key(i), old.ID)
			}
			if moved || !bytes.Equal(t.stale.TypeBits(i), t.fresh.TypeBits(j)) {
				w.putEntry(t, j, rec.ID)
			}
			i, j = i+1, j+1
		}
	}
	t.surplus += int64(t.fresh.Count() - t.stale.Count())
	if t.skipped && rec.ID != nil {
		w.noteSkipped(t, rec.ID)
	}
	if rec.ID != nil {
		t.surplus--
		w.setMultikey(t)
	}
	if old.ID != nil {
		t.surplus++
	}
}

func (w *Writer) putEntry(t *writtenTable, i int, id RecordID) {
	if t.building() {
		w.noteAside(t, layout.SidePut, t.fresh.Key(i), id, t.fresh.TypeBits(i))
		return
	}
	w.key = t.EntryKey(w.key[:0], t.fresh.Key(i), id)
	w.value = t.EntryValue(w.value[:0], id, t.fresh.TypeBits(i))
	if layout.HoldsIDs(t.Definition) {
		w.txn.kv.SetCached(w.key, w.value)
		return
	}
	w.txn.kv.Set(w.key, w.value)
}

func (w *Writer) deleteEntry(t *writtenTable, keyString []byte, id RecordID) {
	if t.building() {
		w.noteAside(t, layout.SideDelete, keyString, id, nil)
		return
	}
	w.key = t.EntryKey(w.key[:0], keyString, id)
	w.txn.kv.Delete(w.key)
}

// setMultikey makes the bits that the fresh keys need visible to readers at once, and stores those that are not stored.
func (w *Writer) setMultikey(t *writtenTable) {
	if t.fresh.None || !t.fresh.IsMultikey() {
		return
	}
	if t.Wild != nil {
		w.setMultikeyPaths(t)
		return
	}
	if t.multikey.HasStored(t.fresh.Multikey) {
		return
	}
	t.multikey.See(t.fresh.Multikey)
	multikey.Stored{Bits: t.fresh.Multikey}.Set(w.txn.kv, t.ID)
	if t.bits == nil {
		t.bits = make([]uint64, len(t.Fields))
	}
	for i, b := range t.fresh.Multikey {
		t.bits[i] |= b
	}
}

// setMultikeyPaths is setMultikey for a wildcard index.
func (w *Writer) setMultikeyPaths(t *writtenTable) {
	if t.multikey.HasStoredPaths(&t.fresh.Keys) {
		return
	}
	paths := t.multikey.SeePaths(t.fresh.Paths())
	multikey.Stored{Paths: paths}.Set(w.txn.kv, t.ID)
	t.paths = paths.Union(t.paths)
}

// moveDeadline is moveEntries for a TTL index on _ts.
func (w *Writer) moveDeadline(t *writtenTable, old, rec Record) {
	if old.ID != nil {
		if key := w.c.order.AppendDeadline(w.key[:0], t.Definition, old); key != nil {
			w.key = key
			w.deleteDeadline(t, old.ID)
			t.surplus--
		} else if w.c.order.Implies(t.Definition, old.ID) {
			w.implied--
		}
		t.surplus++
	}
	if rec.ID != nil {
		if key := w.c.order.AppendDeadline(w.key[:0], t.Definition, rec); key != nil {
			w.key = key
			w.putDeadline(t, rec.ID)
			t.surplus++
		} else if w.c.order.Implies(t.Definition, rec.ID) {
			w.implied++
		}
		t.surplus--
	}
}

// putDeadline writes the entry whose key is in w.key.
func (w *Writer) putDeadline(t *writtenTable, id RecordID) {
	if t.building() {
		w.noteAside(t, layout.SidePut, deadlineString(w.key, id), id, nil)
		return
	}
	w.txn.kv.Set(w.key, nil)
}

func (w *Writer) deleteDeadline(t *writtenTable, id RecordID) {
	if t.building() {
		w.noteAside(t, layout.SideDelete, deadlineString(w.key, id), id, nil)
		return
	}
	w.txn.kv.Delete(w.key)
}

// deadlineString is a copy of what stands before the record id in the key of an entry of a TTL index on _ts.
func deadlineString(key []byte, id RecordID) []byte {
	return slices.Clone(key[layout.TableLength : len(key)-len(id)])
}

// makeRoom refuses the fresh keys that are taken by another record, deletes the expired ones that take them, and claims
// them. self is the record that they are for, nil when it is new.
func (w *Writer) makeRoom(self RecordID) error {
	for i := range w.tables {
		t := &w.tables[i]
		if !t.touched || t.building() || !layout.HoldsIDs(t.Definition) && !t.PrepareUnique {
			continue
		}
		for j := range t.fresh.Count() {
			if t.stale.Has(t.fresh.Key(j)) {
				continue
			}
			if err := w.makeRoomFor(t, j, self); err != nil {
				return err
			}
		}
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

func (w *Writer) makeRoomFor(t *writtenTable, j int, self RecordID) error {
	free, err := w.isNew(t, t.fresh.Key(j))
	if err != nil {
		return err
	}
	if !free {
		err = w.evict(t, j, self)
	}
	if err != nil {
		return err
	}
	w.claim(append(layout.TableKey(w.key[:0], t.Definition), t.fresh.Key(j)...))
	return nil
}

// isNew says whether an _id's key string is known to be free, and notes that it is about to be taken.
func (w *Writer) isNew(t *writtenTable, keyString []byte) (bool, error) {
	if w.c.id == nil || t.Definition != w.c.id.Definition {
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
	return it.Key()[len(prefix):], nil
}

// evict refuses the j-th fresh key if another record has it; an expired one that does is in the way.
func (w *Writer) evict(t *writtenTable, j int, self RecordID) error {
	ids, err := w.holders(t, t.fresh.Key(j))
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
			if err := w.takeDead(t, t.fresh.Key(j), id); err != nil {
				return err
			}
			continue
		case !w.hidden(&rec):
			return duplicate.Key(w.c.Collection, t.Definition, t.fresh.Key(j), t.fresh.TypeBits(j))
		}
		w.isInTheWay(rec)
	}
	return nil
}

// takeDead makes sure that an entry without a record is what a sweep has left, and removes it where it is in the way.
func (w *Writer) takeDead(t *writtenTable, keyString []byte, id RecordID) error {
	dead, err := w.isDead(id)
	switch {
	case err != nil:
		return err
	case !dead:
		return duplicate.BrokenIndex(w.c.Collection, t.Definition, id)
	case layout.HoldsIDs(t.Definition):
		w.key = append(layout.TableKey(w.key[:0], t.Definition), keyString...)
		w.claim(w.key)
		if w.txn.statements != nil && !w.txn.isThere(w.key) {
			return w.txn.statements.failed // it was cleaned since the transaction began
		}
		w.txn.kv.Delete(w.key)
		t.surplus--
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
	for i := range w.tables {
		w.tables[i].surplus += aside.tables[i].surplus
	}
	return nil
}

// holders are the records that have a key string in an index.
func (w *Writer) holders(t *writtenTable, keyString []byte) ([]RecordID, error) {
	w.key = append(layout.TableKey(w.key[:0], t.Definition), keyString...)
	if layout.HoldsIDs(t.Definition) {
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
		if err := t.ReadEntry(&entry, it.Key(), value, &room); err != nil {
			return nil, err
		}
		if bytes.Equal(entry.Key, keyString) {
			ids = append(ids, entry.RecordID.Clone())
		}
	}
	return ids, it.Err()
}
