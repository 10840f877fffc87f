package storage

import (
	"context"
	"slices"
	"sync"

	"github.com/ebbdb/ebb/internal/kv"
)

// cleaning is how far the removal of a collection's dead entries has come. A round goes through all of its indexes.
type cleaning struct {
	mu    sync.Mutex // held by who cleans
	begun []byte     // the marks when the round began; nil between rounds
	index uint32     // where it is
	after []byte     // the last key that was looked at; nil for the beginning
}

const (
	// cleanedPerEntry is how many entries Clean looks at for each that it may remove.
	cleanedPerEntry = 8
)

// Dead is how many records have been swept whose entries in the index on _id are still stored, and how many documents there
// are.
func (r *Reader) Dead() (dead, documents int64, err error) {
	if r.c.id == nil || !r.c.steady.marked.Load() {
		return 0, 0, nil
	}
	entries, err := r.Entries(r.c.id.Definition)
	if err != nil {
		return 0, 0, err
	}
	documents, _, err = r.storedCounts()
	return entries - documents, documents, err
}

// Clean removes at most limit dead entries of a collection's indexes, beside its writers, and goes on where it stopped the
// last time. more is false when a round through all indexes has left nothing.
func (s *Store) Clean(ctx context.Context, collection uint32, limit int) (removed int, more bool, err error) {
	c := s.current.Load().collections[collection]
	if c == nil || !c.steady.marked.Load() {
		return 0, false, nil
	}
	at := &c.steady.cleaning
	at.mu.Lock()
	defer at.mu.Unlock()
	var next cleaning
	err = s.Write(ctx, c.NS, WriteOptions{Durability: kv.Buffered}, func(w *Writer) (err error) {
		removed, more = 0, false
		if w.c.ID != collection {
			return nil
		}
		next = cleaning{begun: at.begun, index: at.index, after: slices.Clone(at.after)}
		removed, more, err = w.clean(&next, limit)
		return err
	})
	if err == nil {
		at.begun, at.index, at.after = next.begun, next.index, next.after
	}
	return removed, more, err
}

func (w *Writer) clean(at *cleaning, limit int) (removed int, more bool, err error) {
	ms, err := w.swept()
	if err != nil || len(ms) == 0 {
		*at = cleaning{}
		return 0, false, err
	}
	if at.begun == nil {
		*at = cleaning{begun: ms.encode()}
	}
	looks := limit * cleanedPerEntry
	for i := range w.tables {
		t := &w.tables[i]
		if t.building() || t.ID < at.index {
			continue
		}
		if t.ID > at.index {
			at.index, at.after = t.ID, nil
		}
		ended, err := w.cleanTable(t, ms, at, &looks, limit, &removed)
		if err != nil || !ended {
			return removed, true, err
		}
	}
	same := string(ms.encode()) == string(at.begun)
	*at = cleaning{}
	if same {
		w.txn.kv.Delete(marksKey(w.c.ID))
	}
	return removed, !same, nil
}

// cleanTable is done when it has come to the end of the index.
func (w *Writer) cleanTable(t *writtenTable, ms marks, at *cleaning, looks *int, limit int, removed *int) (ended bool, err error) {
	start := tableKey(nil, t.Definition)
	var walk walk
	if err := walk.open(w.view, kv.IterOptions{Lower: start, Upper: After(start)}, false, at.after); err != nil {
		return false, err
	}
	defer walk.close()
	var room idRoom
	for *looks > 0 && *removed < limit && walk.next() {
		*looks--
		value, err := walk.it.Value()
		if err != nil {
			return false, err
		}
		key := walk.it.Key()
		at.after = append(at.after[:0], key...)
		id, err := t.id(key, value, &room)
		if err != nil {
			return false, err
		}
		if !id.isOrdered() || !ms.cover(id) {
			continue
		}
		if holdsIDs(t.Definition) { // whoever takes the key overwrites the entry
			w.claim(key)
		}
		w.txn.kv.Delete(key)
		t.surplus--
		*removed++
	}
	return *looks > 0 && *removed < limit && walk.err() == nil, walk.err()
}
