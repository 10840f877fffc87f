package storage

import (
	"errors"
	"fmt"
	"math"
	"sync/atomic"

	"github.com/ebbdb/ebb/internal/kv"
	"github.com/ebbdb/ebb/internal/storage/expiryorder"
	"github.com/ebbdb/ebb/internal/storage/layout"
)

// marked tells in which views there may be tombstones: in those that began when there had been fewer sweeps, of all collections, than
// it says. It rises before a sweep that sets tombstones is committed, while the collection's lock is held exclusively; and it falls
// after the tombstones' deletion is, while the lock is held so that none can be set.
type marked struct{ before atomic.Uint64 }

func (m *marked) set() { m.before.Store(math.MaxUint64) }

// deleted counts as a sweep, so that views that begin from now on are told from those that may still see the tombstones.
func (m *marked) deleted(sweeps *atomic.Uint64) { m.before.Store(sweeps.Add(1)) }

// isSet says whether there may be tombstones in a view that begins now.
func (m *marked) isSet() bool { return m.before.Load() == math.MaxUint64 }

// mayHaveTombstones says whether there may be tombstones in r's view.
func (r *Reader) mayHaveTombstones() bool { return r.c.state.marked.before.Load() > r.view.swept }

func readTombstones(r kv.Reader, collection uint32) (expiryorder.Tombstones, error) {
	value, err := r.Get(layout.TombstonesKey(collection))
	switch {
	case errors.Is(err, kv.ErrNotFound):
		return nil, nil
	case err != nil:
		return nil, fmt.Errorf("storage: read what was swept: %w", err)
	}
	ts, err := expiryorder.DecodeTombstones(value)
	if err != nil {
		return nil, fmt.Errorf("storage: collection %d: %w", collection, err)
	}
	return ts, nil
}

// swept are the tombstones as r's view has them.
func (r *Reader) swept() (expiryorder.Tombstones, error) {
	if r.tombstonesRead || !r.mayHaveTombstones() {
		return r.tombstones, nil
	}
	var err error
	r.tombstones, err = readTombstones(r.view.reader, r.c.ID)
	r.tombstonesRead = err == nil
	return r.tombstones, err
}

// isDead says whether the record with the id has been swept, so that an entry with it means nothing.
func (r *Reader) isDead(id RecordID) (bool, error) {
	if !id.IsOrdered() {
		return false, nil
	}
	ms, err := r.swept()
	return err == nil && ms.Cover(id), err
}
