package build

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"

	"github.com/ebbdb/ebb/internal/memory"
	"github.com/ebbdb/ebb/internal/spill"
)

// sorter puts the entries of an index that is being built in order: in memory as long as they fit into its budget, in
// sorted runs on disk beyond that. Entries are added, and then taken out with next; close gives the runs back.
type sorter struct {
	dir    string // of the runs
	budget int    // bytes
	data   []byte
	items  []sortItem
	runs   []*spill.Run
	merge  *spill.Merge[sortedEntry]
	begun  bool  // the first of merge has been given out
	place  int   // of the next item, when nothing was spilled
	added  int64 // entries
	memory memory.Account
}

// sortItem is an entry in a sorter's memory: its key string, its record id and its type bits, one behind the other.
type sortItem struct {
	prefix         uint64 // the first bytes of the key, which most comparisons end with
	at             uint32
	key, id, extra uint32 // lengths
}

const (
	sortItemBytes = 24
	// minSpillBytes is how much is kept at least before it is spilled because others need the memory.
	minSpillBytes = 1 << 20
	// maxSortBytes is the largest budget: offsets have 32 bits.
	maxSortBytes = 1 << 30
)

// sortedEntry is one entry; its bytes are good until the next move.
type sortedEntry struct{ key, id, typeBits []byte }

func (e *sortedEntry) compare(o *sortedEntry) int {
	if c := bytes.Compare(e.key, o.key); c != 0 {
		return c
	}
	return bytes.Compare(e.id, o.id)
}

func readSorted(r *spill.Run, e *sortedEntry) error { return r.Read(&e.key, &e.id, &e.typeBits) }

func openMerge(runs []*spill.Run) (*spill.Merge[sortedEntry], error) {
	return spill.Open(runs, readSorted, (*sortedEntry).compare)
}

func newSorter(dir string, budget int) *sorter {
	return &sorter{dir: dir, budget: min(budget, maxSortBytes)}
}

func (s *sorter) add(key, id, typeBits []byte) error {
	n := len(key) + len(id) + len(typeBits)
	if len(s.items) > 0 && len(s.data)+n+sortItemBytes*len(s.items) > s.budget || !s.room(n) {
		if err := s.spill(); err != nil {
			return err
		}
		s.memory.Charge(int64(n + sortItemBytes))
	}
	s.added++
	s.items = append(s.items, sortItem{prefixOf(key, id), uint32(len(s.data)), uint32(len(key)), uint32(len(id)), uint32(len(typeBits))})
	s.data = append(append(append(s.data, key...), id...), typeBits...)
	return nil
}

// room takes memory for an entry of n bytes more. Without any it says whether what is there is too little to be spilled.
func (s *sorter) room(n int) bool {
	n += sortItemBytes
	if s.memory.Take(int64(n)) {
		return true
	}
	if len(s.data)+sortItemBytes*len(s.items) >= minSpillBytes {
		return false
	}
	s.memory.Charge(int64(n))
	return true
}

func prefixOf(key, id []byte) uint64 {
	if len(key) >= 8 {
		return binary.BigEndian.Uint64(key)
	}
	var b [8]byte
	n := copy(b[:], key)
	copy(b[n:], id)
	return binary.BigEndian.Uint64(b[:])
}

func (s *sorter) entry(i sortItem) sortedEntry {
	id := i.at + i.key
	bits := id + i.id
	return sortedEntry{s.data[i.at:id:id], s.data[id:bits:bits], s.data[bits : bits+i.extra]}
}

// sort orders by key string and then by record id: key strings are free of prefixes, so their bytes together say both.
func (s *sorter) sort() {
	slices.SortFunc(s.items, func(a, b sortItem) int {
		if a.prefix != b.prefix {
			return cmp.Compare(a.prefix, b.prefix)
		}
		return bytes.Compare(s.data[a.at:a.at+a.key+a.id], s.data[b.at:b.at+b.key+b.id])
	})
}

// spill writes what is in memory as a run.
func (s *sorter) spill() error {
	s.sort()
	r, err := s.newRun()
	if err != nil {
		return err
	}
	for _, i := range s.items {
		e := s.entry(i)
		if err := r.Write(e.key, e.id, e.typeBits); err != nil {
			return building(err)
		}
	}
	s.data, s.items = s.data[:0], s.items[:0]
	if s.memory.Short() {
		s.data, s.items = nil, nil
	}
	s.memory.Close()
	return building(r.Rewind())
}

func (s *sorter) newRun() (*spill.Run, error) {
	r, err := spill.New(s.dir)
	if err != nil {
		return nil, building(err)
	}
	s.runs = append(s.runs, r)
	return r, nil
}

func building(err error) error {
	if err != nil {
		return fmt.Errorf("storage: sort what lies in another order: %w", err)
	}
	return nil
}

// finish ends adding.
func (s *sorter) finish() error {
	if len(s.runs) == 0 {
		s.sort()
		return nil
	}
	if err := s.spill(); err != nil {
		return err
	}
	s.data, s.items = nil, nil
	for len(s.runs) > spill.MaxRuns {
		if err := s.mergeFirst(); err != nil {
			return err
		}
	}
	var err error
	s.merge, err = openMerge(s.runs)
	return building(err)
}

// mergeFirst puts one run in the place of the first.
func (s *sorter) mergeFirst() error {
	m, err := openMerge(s.runs[:spill.MaxRuns])
	if err != nil {
		return building(err)
	}
	to, err := s.newRun()
	if err != nil {
		return err
	}
	for e := m.Top(); e != nil; e = m.Top() {
		if err := errors.Join(to.Write(e.key, e.id, e.typeBits), m.Next()); err != nil {
			return building(err)
		}
	}
	spill.Close(s.runs[:spill.MaxRuns])
	s.runs = slices.Delete(s.runs, 0, spill.MaxRuns)
	return building(to.Rewind())
}

// next is the next entry in order; ok is false at the end.
func (s *sorter) next() (e sortedEntry, ok bool, err error) {
	if s.merge != nil {
		return s.nextMerged()
	}
	if s.place == len(s.items) {
		return sortedEntry{}, false, nil
	}
	e = s.entry(s.items[s.place])
	s.place++
	return e, true, nil
}

func (s *sorter) nextMerged() (e sortedEntry, ok bool, err error) {
	if s.begun && s.merge.Top() != nil {
		if err := s.merge.Next(); err != nil {
			return e, false, building(err)
		}
	}
	s.begun = true
	if top := s.merge.Top(); top != nil {
		return *top, true, nil
	}
	return e, false, nil
}

func (s *sorter) close() {
	spill.Close(s.runs)
	s.memory.Close()
	*s = sorter{}
}
