package multikey

import (
	"encoding/binary"
	"fmt"

	"github.com/ebbdb/ebb/internal/index"
	"github.com/ebbdb/ebb/internal/kv"
	"github.com/ebbdb/ebb/internal/storage/layout"
	"github.com/ebbdb/ebb/internal/storage/walk"
)

// Stored is what is stored, or about to be, of one index: bits by field, or a wildcard's paths.
type Stored struct {
	Bits  []uint64
	Paths *index.PathSet
}

// Of is m as an index with d's fields has it; m may be nil.
func (m *Stored) Of(d *index.Definition) Stored {
	out := Stored{Bits: make([]uint64, len(d.Fields)), Paths: new(index.PathSet)}
	if m != nil {
		copy(out.Bits, m.Bits)
		out.Paths = out.Paths.Union(m.Paths)
	}
	return out
}

// InMemory is m as it is kept in memory of an index with d's fields; m may be nil.
func (m *Stored) InMemory(d *index.Definition) *Index {
	out := New(d)
	out.Store(m.Of(d))
	return out
}

// Set writes each of the bits, and each of the paths or what stands for all, under its own key.
func (m Stored) Set(t kv.Txn, number uint32) {
	for field, b := range m.Bits {
		for component := range 64 {
			if b&(1<<component) != 0 {
				t.Set(layout.MultikeyKey(number, field, component), nil)
			}
		}
	}
	if m.Paths == nil {
		return
	}
	if m.Paths.IsAll() {
		t.Set(layout.MultikeyPathKey(number, layout.EveryPath, ""), nil)
	}
	for _, path := range m.Paths.Paths() {
		t.Set(layout.MultikeyPathKey(number, layout.OnePath, path), nil)
	}
}

// Read is what is stored of all indexes, by their numbers.
func Read(r kv.Reader) (map[uint32]*Stored, error) {
	all := map[uint32]*Stored{}
	err := walk.Meta(r, layout.MetaMultikey, func(key, _ []byte) error { return Add(all, key) })
	return all, err
}

// Add adds what a key says, without its first two bytes.
func Add(all map[uint32]*Stored, key []byte) error {
	if len(key) < 5 {
		return broken(key)
	}
	id := binary.BigEndian.Uint32(key)
	if all[id] == nil {
		all[id] = &Stored{Bits: make([]uint64, index.MaxFields)}
	}
	return all[id].read(key[4:])
}

// read adds what a key says, without the index's number.
func (m *Stored) read(key []byte) error {
	switch {
	case key[0] == layout.OnePath:
		m.Paths = m.Paths.With(string(key[1:]))
	case key[0] == layout.EveryPath:
		m.Paths = index.AllPaths()
	case len(key) == 2 && key[0] < index.MaxFields && key[1] < 64:
		m.Bits[key[0]] |= 1 << key[1]
	default:
		return broken(key)
	}
	return nil
}

func broken(key []byte) error { return fmt.Errorf("a multikey bit has the key %x", key) }
