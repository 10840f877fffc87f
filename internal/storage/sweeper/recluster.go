package sweeper

import (
	"context"
	"sync"
	"sync/atomic"

	"github.com/ebbdb/ebb/internal/kv"
	"github.com/ebbdb/ebb/internal/storage"
	"github.com/ebbdb/ebb/internal/storage/expiry"
	"github.com/ebbdb/ebb/internal/storage/layout"
)

// reclustering is how far the records of a collection were looked through for those that lie elsewhere than in its order.
type reclustering struct {
	mu sync.Mutex // held by who reclusters
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

// Recluster moves at most limit records of a collection to where its order wants them, beside its writers, and goes on where
// it stopped the last time. more says that there may be others that no open transaction has written.
func (s *Sweeper) Recluster(ctx context.Context, collection uint32, limit int) (moved int, more bool, err error) {
	c, ok := s.store.CollectionByID(collection)
	if !ok || !c.ExpiryOrder().Relocates() {
		return 0, false, nil
	}
	a := &s.workOf(collection).reclustering
	a.mu.Lock()
	defer a.mu.Unlock()
	at := a.under(c.ExpiryOrder().Number)
	var last []byte
	var all, spared bool
	err = s.store.Write(ctx, c.NS, storage.WriteOptions{Durability: kv.Buffered, PassesOver: true}, func(w *storage.Writer) (err error) {
		var found []storage.Record
		moved, last, all, spared = 0, nil, true, false
		if w.Catalog().ID != collection || w.Order() != at.number { // 0 where nothing moves
			return nil
		}
		if found, all, err = expiry.Unclustered(w.Dates(), at.after, limit); err != nil {
			return err
		}
		for _, rec := range found {
			if w.IsSpared(rec.ID) { // its place is taken up again when the transaction has ended that has it
				spared = true
				continue
			}
			if err := w.Recluster(rec); err != nil {
				return err
			}
			if moved++; !spared {
				last = layout.RecordKey(nil, collection, rec.ID)
			}
		}
		return nil
	})
	if err != nil {
		return 0, false, err
	}
	if moved == 0 {
		return 0, false, nil
	}
	if last == nil {
		last = at.after
	}
	a.at.Store(&reclustered{at.number, last, at.moved + int64(moved)})
	return moved, !all, nil
}

// Reclustered is the number of the order that a collection's records lie in, or are brought into, 0 for none; and how many
// Recluster has moved there since the store was opened.
func (s *Sweeper) Reclustered(collection uint32) (order uint32, moved int64) {
	c, ok := s.store.CollectionByID(collection)
	if !ok || !c.ExpiryOrder().Relocates() {
		return 0, 0
	}
	order = c.ExpiryOrder().Number
	if w, ok := s.known(collection); ok {
		moved = w.reclustering.under(order).moved
	}
	return order, moved
}

// Unclustered is how many records of a collection lie elsewhere than in its order now, counted by their keys up to limit. It
// takes a view of its own, that begins after it is known where Recluster stands: in an older one there are records before.
func (s *Sweeper) Unclustered(ctx context.Context, collection uint32, limit int64) (n int64, err error) {
	var at *reclustered
	if w, ok := s.known(collection); ok {
		at = w.reclustering.at.Load()
	}
	view, err := s.store.View(ctx)
	if err != nil {
		return 0, err
	}
	defer view.Close()
	r, ok := view.CollectionByID(collection)
	if !ok || r.Order() == 0 {
		return 0, nil
	}
	var after []byte
	if at != nil && at.number == r.Order() {
		after = at.after
	}
	return expiry.CountUnclustered(r.Dates(), after, limit)
}
