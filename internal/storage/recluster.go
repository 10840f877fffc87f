package storage

import (
	"context"
	"errors"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/ebbdb/ebb/internal/kv"
	"github.com/ebbdb/ebb/internal/storage/layout"
	"github.com/ebbdb/ebb/internal/storage/walk"
)

// reclustering is how far the records of a collection were looked through for those that lie elsewhere than in its order.
type reclustering struct {
	mu sync.Mutex // held by who arranges
	at atomic.Pointer[reclustered]
}

// reclustered is where Recluster stands. It does not change.
type reclustered struct {
	number uint32 // of the order
	after  []byte // the last key that was moved: what lies before it is gone, and would be walked over each time
	moved  int64  // under this order
}

// under is where it stands with the order: at the beginning when nothing was moved under it yet.
func (a *reclustering) under(number uint32) *reclustered {
	if at := a.at.Load(); at != nil && at.number == number {
		return at
	}
	return &reclustered{number: number}
}

// reclusterBytes bounds the documents that one transaction of Recluster moves.
const reclusterBytes = 4 << 20

// Recluster moves at most limit records of a collection to where its order wants them, beside its writers, and goes on where
// it stopped the last time. more says that there may be others.
func (s *Store) Recluster(ctx context.Context, collection uint32, limit int) (moved int, more bool, err error) {
	c := s.current.Load().collections[collection]
	if c == nil || !c.order.Relocates() {
		return 0, false, nil
	}
	a := &c.state.reclustering
	a.mu.Lock()
	defer a.mu.Unlock()
	at := a.under(c.order.Number)
	var found []Record
	var all bool
	err = s.Write(ctx, c.NS, WriteOptions{Durability: kv.Buffered}, func(w *Writer) (err error) {
		found, all = nil, true
		if w.c.ID != collection || !w.c.order.Relocates() || w.c.order.Number != at.number {
			return nil
		}
		if found, all, err = w.unclustered(at.after, limit); err != nil {
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
		last := layout.RecordKey(nil, collection, found[len(found)-1].ID)
		a.at.Store(&reclustered{at.number, last, at.moved + int64(len(found))})
		return len(found), !all, nil
	}
	return 0, false, nil
}

// Reclustered is the number of the order that a collection's records lie in, or are brought into, 0 for none; and how many
// Recluster has moved there since the store was opened.
func (s *Store) Reclustered(collection uint32) (order uint32, moved int64) {
	c := s.current.Load().collections[collection]
	if c == nil || !c.order.Relocates() {
		return 0, 0
	}
	return c.order.Number, c.state.reclustering.under(c.order.Number).moved
}

// Unclustered is how many records of a collection lie elsewhere than in its order now, counted by their keys up to limit. It
// takes a view of its own, that begins after it is known where Recluster stands: in an older one there are records before.
func (s *Store) Unclustered(ctx context.Context, collection uint32, limit int64) (n int64, err error) {
	c := s.current.Load().collections[collection]
	if c == nil {
		return 0, nil
	}
	at := c.state.reclustering.at.Load()
	view, err := s.View(ctx)
	if err != nil {
		return 0, err
	}
	defer view.Close()
	r, ok := view.CollectionByID(collection)
	if !ok || !r.c.order.Relocates() {
		return 0, nil
	}
	var after []byte
	if at != nil && at.number == r.c.order.Number {
		after = at.after
	}
	for _, part := range r.outOfOrder(after) {
		counted, err := walk.Count(r.view.ctx, r.view.reader, part, limit-n)
		if n += counted; err != nil || n >= limit {
			return n, err
		}
	}
	return n, nil
}

// Unclustered says whether any record lies where the collection's order does not want it.
func (r *Reader) Unclustered() (bool, error) {
	if !r.c.order.Relocates() {
		return false, nil
	}
	found, _, err := r.unclustered(nil, 1)
	return len(found) > 0, err
}

// outOfOrder are the keys behind after, or all when that is nil, that do not lie in the collection's order.
func (r *Reader) outOfOrder(after []byte) [2]kv.IterOptions {
	start := layout.RecordKey(nil, r.c.ID, nil)
	if after == nil {
		after = start
	}
	low, high := r.c.order.Bounds()
	return [2]kv.IterOptions{{Lower: after, Upper: low}, {Lower: larger(after, high), Upper: layout.After(start)}}
}

// unclustered are at most limit records behind the key after that lie elsewhere than in the order; all says that there are no
// more.
func (r *Reader) unclustered(after []byte, limit int) (found []Record, all bool, err error) {
	bytes := 0
	for _, part := range r.outOfOrder(after) {
		var w walk.Keys
		if err := w.Open(r.view.ctx, r.view.reader, part, false, nil); err != nil {
			return nil, false, err
		}
		for err == nil && w.Next() {
			if len(found) == limit || bytes > reclusterBytes {
				return found, false, w.Close()
			}
			var rec Record
			if rec, err = w.Record(); err == nil {
				found = append(found, rec.Clone())
				bytes += len(rec.Doc)
			}
		}
		if err = errors.Join(err, w.Err(), w.Close()); err != nil {
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
	w.write(DocumentMoved, old, Record{ID: id, Modified: old.Modified, Doc: old.Doc})
	return nil
}
