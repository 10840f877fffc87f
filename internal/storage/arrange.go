package storage

import (
	"context"
	"errors"
	"slices"
	"sync"

	"github.com/ebbdb/ebb/internal/kv"
)

// arranging is how far the records of a collection were looked through for those that lie elsewhere than in its order.
type arranging struct {
	mu     sync.Mutex // held by who arranges
	number uint32     // of the order
	after  []byte     // the last key that was moved: what lies before it is gone, and would be walked over each time
}

// arrangeBytes bounds the documents that one transaction of Arrange moves.
const arrangeBytes = 4 << 20

// Arrange moves at most limit records of a collection to where its order wants them, beside its writers, and goes on where
// it stopped the last time. more says that there may be others.
func (s *Store) Arrange(ctx context.Context, collection uint32, limit int) (moved int, more bool, err error) {
	c := s.current.Load().collections[collection]
	if c == nil || !c.moves() {
		return 0, false, nil
	}
	at := &c.steady.arranging
	at.mu.Lock()
	defer at.mu.Unlock()
	if at.number != c.order.number {
		at.number, at.after = c.order.number, nil
	}
	var found []Record
	var all bool
	err = s.Write(ctx, c.NS, WriteOptions{Durability: kv.Buffered}, func(w *Writer) (err error) {
		found, all = nil, true
		if w.c.ID != collection || !w.c.moves() || w.c.order.number != at.number {
			return nil
		}
		if found, all, err = w.misplaced(at.after, limit); err != nil {
			return err
		}
		for _, rec := range found {
			if err := w.move(rec); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return 0, false, err
	}
	if len(found) > 0 {
		at.after = recordKey(nil, collection, found[len(found)-1].ID)
		return len(found), !all, nil
	}
	return 0, false, nil
}

// Misplaced says whether any record lies where the collection's order does not want it.
func (r *Reader) Misplaced() (bool, error) {
	if !r.c.moves() {
		return false, nil
	}
	found, _, err := r.misplaced(nil, 1)
	return len(found) > 0, err
}

// misplaced are at most limit records behind the key after that lie elsewhere than in the order; all says that there are no
// more.
func (r *Reader) misplaced(after []byte, limit int) (found []Record, all bool, err error) {
	start := recordKey(nil, r.c.ID, nil)
	if after == nil {
		after = start
	}
	low, high := r.c.orderBounds()
	bytes := 0
	for _, part := range []kv.IterOptions{{Lower: after, Upper: low}, {Lower: larger(after, high), Upper: After(start)}} {
		var w walk
		if err := w.open(r.view, part, false, nil); err != nil {
			return nil, false, err
		}
		for err == nil && w.next() {
			if len(found) == limit || bytes > arrangeBytes {
				return found, false, w.close()
			}
			var rec Record
			if rec, err = w.record(); err == nil {
				found = append(found, rec.Clone())
				bytes += len(rec.Doc)
			}
		}
		if err = errors.Join(err, w.err(), w.close()); err != nil {
			return nil, false, err
		}
	}
	return found, true, nil
}

func larger(a, b []byte) []byte {
	if slices.Compare(a, b) > 0 {
		return a
	}
	return b
}

// move puts a record, unchanged, where it belongs.
func (w *Writer) move(old Record) error {
	id, err := w.reorder(old.ID, old.Doc, old.Modified)
	if err != nil {
		return err
	}
	if err := w.changedKeys(old.Doc, old.Doc, true); err != nil {
		return err
	}
	w.write(old, Record{id, old.Modified, old.Doc})
	return nil
}
