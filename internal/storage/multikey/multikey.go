// Package multikey is which components of an index's paths have gone through an array in some document: in memory, where readers ask and
// writers go ahead of their commits, and stored, each bit and each path under a key of its own.
package multikey

import (
	"sync/atomic"

	"github.com/ebbdb/ebb/internal/index"
)

// Index is what is known of one index. Bits are only added.
//
// seen is what readers go by, and is set before the commit that needs it; stored is what is known to be on disk. A bit
// that is seen but not stored is stored by everybody who needs it: each bit has a key of its own, so this conflicts with
// nobody and is the same however often it is done.
type Index struct {
	seen, stored []atomic.Uint64 // by field of the key
	// The same of a wildcard, whose paths are not known beforehand.
	seenPaths, storedPaths atomic.Pointer[index.PathSet]
	wild                   bool
}

// New is that of an index with d's fields of which nothing is known yet.
func New(d *index.Definition) *Index {
	return &Index{wild: d.Wild != nil, seen: make([]atomic.Uint64, len(d.Fields)), stored: make([]atomic.Uint64, len(d.Fields))}
}

// See adds bits to what was seen.
func (m *Index) See(bits []uint64) {
	for i, b := range bits {
		if b != 0 {
			m.seen[i].Or(b)
		}
	}
}

// SeePaths adds to what was seen and returns what of it has to be stored: paths, or all.
func (m *Index) SeePaths(paths []string) *index.PathSet {
	if addPaths(&m.seenPaths, new(index.PathSet).With(paths...)).IsAll() {
		return index.AllPaths()
	}
	return new(index.PathSet).With(paths...)
}

// SeeKeys notes where the keys of a document go through arrays.
func (m *Index) SeeKeys(k *index.Keys) {
	switch {
	case !m.wild:
		m.See(k.Multikey)
	case !m.SeenPaths().HasAll(k):
		m.SeePaths(k.Paths())
	}
}

// Store notes that s is stored, and so seen.
func (m *Index) Store(s Stored) {
	bits := s.Bits[:min(len(s.Bits), len(m.seen))]
	m.See(bits)
	for i, b := range bits {
		if b != 0 {
			m.stored[i].Or(b)
		}
	}
	if s.Paths != nil {
		addPaths(&m.seenPaths, s.Paths)
		addPaths(&m.storedPaths, s.Paths)
	}
}

func addPaths(p *atomic.Pointer[index.PathSet], s *index.PathSet) *index.PathSet {
	for {
		old := p.Load()
		next := old.Union(s)
		if p.CompareAndSwap(old, next) {
			return next
		}
	}
}

// HasStored says whether all the bits are stored.
func (m *Index) HasStored(bits []uint64) bool {
	for i, b := range bits {
		if b&^m.stored[i].Load() != 0 {
			return false
		}
	}
	return true
}

// HasStoredPaths says whether all paths are stored at which keys have arrays.
func (m *Index) HasStoredPaths(keys *index.Keys) bool { return m.storedPaths.Load().HasAll(keys) }

// Stored is a copy of what is known to be stored.
func (m *Index) Stored() Stored { return Stored{values(m.stored), m.storedPaths.Load()} }

// Seen is a copy of the bits that were seen.
func (m *Index) Seen() []uint64 { return values(m.seen) }

// SeenIn are the bits that were seen in one field of the key.
func (m *Index) SeenIn(field int) uint64 { return m.seen[field].Load() }

// SeenPaths are the paths of a wildcard that were seen.
func (m *Index) SeenPaths() *index.PathSet { return m.seenPaths.Load() }

func values(bits []atomic.Uint64) []uint64 {
	out := make([]uint64, len(bits))
	for i := range bits {
		out[i] = bits[i].Load()
	}
	return out
}

// Any says whether any bit was seen.
func (m *Index) Any() bool {
	for i := range m.seen {
		if m.seen[i].Load() != 0 {
			return true
		}
	}
	return false
}
