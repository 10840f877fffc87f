// Package sweeper works at whole collections that let documents expire: it deletes at once all that is due (Sweep), for commands also what is
// spared (DeleteDue), brings records that were there before a TTL into the order of their expiry (Recluster), and removes the index entries that sweeps leave behind (Vacuum). It decides what
// is worth doing, in which steps, and under which locks; what a step does to keys is package expiry's. It does not know when any of
// it is due, nor who asks.
//
// # Invariants
//
//   - Whatever is deleted as a stretch is deleted while nobody else writes to the collection (storage.Collection.Lock, LockToSweep).
//   - What is kept of a collection between steps can be thrown away at any time: the work begins anew then.
package sweeper

import (
	"sync"

	"github.com/ebbdb/ebb/internal/clock"
	"github.com/ebbdb/ebb/internal/kv"
	"github.com/ebbdb/ebb/internal/storage"
	"github.com/ebbdb/ebb/internal/storage/expiry"
)

// Sweeper works at the collections of one store.
type Sweeper struct {
	// Limits bound each step; nobody changes them while there are any.
	Limits expiry.Limits

	store  *storage.Store
	engine kv.Engine
	can    kv.Capabilities // of the engine
	clock  clock.Clock
	// compaction is the one that vacuums under way.
	compaction indexCompactions
	mu         struct {
		sync.Mutex
		works map[uint32]*work // by collection
	}
}

// work is what is kept of a collection between steps.
type work struct {
	counting     orderCount
	vacuuming    vacuuming
	reclustering reclustering
}

// New is a Sweeper of a store over the engine.
func New(store *storage.Store, engine kv.Engine, c clock.Clock) *Sweeper {
	s := &Sweeper{Limits: expiry.DefaultLimits(), store: store, engine: engine, can: engine.Capabilities(), clock: c}
	s.mu.works = map[uint32]*work{}
	return s
}

// workOf is what is kept of a collection.
func (s *Sweeper) workOf(collection uint32) *work {
	s.mu.Lock()
	defer s.mu.Unlock()
	w := s.mu.works[collection]
	if w == nil {
		w = &work{}
		s.mu.works[collection] = w
	}
	return w
}

// known is what is kept of a collection, if anything is.
func (s *Sweeper) known(collection uint32) (w *work, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	w, ok = s.mu.works[collection]
	return w, ok
}

// Forget gives back what is kept of a collection that was dropped, or was to be. Nobody who waits for this holds its lock.
func (s *Sweeper) Forget(collection uint32) {
	w, ok := s.known(collection)
	if !ok {
		return
	}
	w.counting.stop()
	if _, there := s.store.CollectionByID(collection); there {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.mu.works, collection)
}

// Close gives back what is kept of all.
func (s *Sweeper) Close() {
	s.compaction.stop()
	s.mu.Lock()
	all := s.mu.works
	s.mu.works = map[uint32]*work{}
	s.mu.Unlock()
	for _, w := range all {
		w.counting.stop()
	}
}
