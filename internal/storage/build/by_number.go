package build

import (
	"encoding/binary"

	"github.com/ebbdb/ebb/internal/memory"
	"github.com/ebbdb/ebb/internal/storage/layout"
)

// ByNumber puts the ids of a collection's records in the order of their numbers, which is that of insertion, wherever the records lie:
// in memory or, where they are many, in files. Ids are added, and after Finish taken out. Close it.
type ByNumber struct {
	sorter *sorter
	number [layout.SequenceLength]byte
}

// NewByNumber is one without ids; of the options it needs those that say where it sorts.
func NewByNumber(o Options) *ByNumber {
	b := &ByNumber{sorter: newSorter(o.TempDir, o.MemoryBytes)}
	b.sorter.memory.Open(o.Memory, memory.IndexBuilds)
	return b
}

// Add adds an id.
func (b *ByNumber) Add(id layout.RecordID) error {
	binary.BigEndian.PutUint64(b.number[:], id.Number())
	return b.sorter.add(b.number[:], id, nil)
}

// Finish ends adding.
func (b *ByNumber) Finish() error { return b.sorter.finish() }

// Next is the next id, good until the next call; ok is false at the end.
func (b *ByNumber) Next() (id layout.RecordID, ok bool, err error) {
	e, ok, err := b.sorter.next()
	return e.id, ok, err
}

// Close gives back what it holds.
func (b *ByNumber) Close() { b.sorter.close() }
