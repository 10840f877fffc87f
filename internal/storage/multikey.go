package storage

import (
	"sync/atomic"

	"github.com/ebbdb/ebb/internal/index"
	"github.com/ebbdb/ebb/internal/kv"
	"github.com/ebbdb/ebb/internal/storage/layout"
)

// multikey is which components of an index's paths went through an array in some document, ever. Bits are only added.
//
// seen is what readers go by, and is set before the commit that needs it; stored is what is known to be on disk. A bit
// that is seen but not stored is stored by everybody who needs it: each bit has a key of its own, so this conflicts with
// nobody and is the same however often it is done.
type multikey struct {
	seen, stored []atomic.Uint64 // by field of the key
	// The same of a wildcard, whose paths are not known beforehand.
	seenPaths, storedPaths atomic.Pointer[index.PathSet]
}

func newMultikey(d *index.Definition) *multikey {
	return &multikey{seen: make([]atomic.Uint64, len(d.Fields)), stored: make([]atomic.Uint64, len(d.Fields))}
}

func (m *multikey) see(bits []uint64) {
	for i, b := range bits {
		if b != 0 {
			m.seen[i].Or(b)
		}
	}
}

func (m *multikey) store(bits []uint64) {
	m.see(bits)
	for i, b := range bits {
		if b != 0 {
			m.stored[i].Or(b)
		}
	}
}

func (m *multikey) hasStored(bits []uint64) bool {
	for i, b := range bits {
		if b&^m.stored[i].Load() != 0 {
			return false
		}
	}
	return true
}

// paths is a copy of what was seen.
func (m *multikey) paths() []uint64 {
	out := make([]uint64, len(m.seen))
	for i := range m.seen {
		out[i] = m.seen[i].Load()
	}
	return out
}

func (m *multikey) any() bool {
	for i := range m.seen {
		if m.seen[i].Load() != 0 {
			return true
		}
	}
	return false
}

// setMultikey writes each of the bits under its own key.
func setMultikey(t kv.Txn, index uint32, bits []uint64) {
	for field, b := range bits {
		for component := range 64 {
			if b&(1<<component) != 0 {
				t.Set(layout.MultikeyKey(index, field, component), nil)
			}
		}
	}
}

// seePaths adds to what was seen and returns what of it has to be stored: paths, or all.
func (m *multikey) seePaths(paths []string) *index.PathSet {
	if addPaths(&m.seenPaths, new(index.PathSet).With(paths...)).IsAll() {
		return index.AllPaths()
	}
	return new(index.PathSet).With(paths...)
}

func (m *multikey) storePaths(s *index.PathSet) {
	addPaths(&m.seenPaths, s)
	addPaths(&m.storedPaths, s)
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

// setMultikeyPaths writes each of a wildcard's paths under its own key, or the one for all.
func setMultikeyPaths(t kv.Txn, number uint32, s *index.PathSet) {
	if s.IsAll() {
		t.Set(layout.MultikeyPathKey(number, layout.EveryPath, ""), nil)
	}
	for _, path := range s.Paths() {
		t.Set(layout.MultikeyPathKey(number, layout.OnePath, path), nil)
	}
}
