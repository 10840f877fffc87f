// Package recordset tells records apart by the numbers that they keep when they move.
package recordset

import (
	"slices"

	"github.com/ebbdb/ebb/internal/storage/layout"
)

// Set tells records apart that a walk meets, also where they move in front of it: by their sequences, of which it keeps a page
// for every pageBits. The zero Set has met none.
type Set struct {
	pages map[uint64]*page
	bytes int
	// last is the page that was used last, and its number.
	last   *page
	number uint64
}

// page has the sequences of a page: as a list while they are few, then as bits, and without either once it has all.
type page struct {
	count int
	few   []uint16
	bits  *[pageBits / 64]uint64
}

const (
	pageBits = 1 << 13
	// maxBytes bounds a Set. Half a million records that lie far apart fit, or half a billion with gaps, or, of those that
	// were inserted one after the other, any number.
	maxBytes = 64 << 20
	// A list is no longer than fewInPage, and a page without bits takes about pageBytes.
	fewInPage = 32
	pageBytes = 128
	bitsBytes = pageBits / 8
)

// Add says whether id is met for the first time. Of ids that do not move, and perhaps once it is full, it says so always.
func (s *Set) Add(id layout.RecordID) bool {
	n, ok := id.Sequence()
	return !ok || s.AddSequence(n)
}

// Full says whether there may be records of which nobody knows whether they were met.
func (s *Set) Full() bool { return s.bytes > maxBytes-bitsBytes }

// AddSequence is Add for the number that an id has by Sequence.
func (s *Set) AddSequence(n uint64) bool {
	page := s.page(n / pageBits)
	if page == nil {
		return true
	}
	i := n % pageBits
	if page.bits == nil {
		return s.addToList(page, uint16(i))
	}
	word, bit := &page.bits[i/64], uint64(1)<<(i%64)
	if *word&bit != 0 {
		return false
	}
	*word |= bit
	if page.count++; page.count == pageBits {
		page.bits = nil
		s.bytes -= bitsBytes
	}
	return true
}

func (s *Set) addToList(page *page, i uint16) bool {
	if page.count == pageBits {
		return false
	}
	at, there := len(page.few), false
	if at > 0 && page.few[at-1] >= i {
		at, there = slices.BinarySearch(page.few, i)
	}
	switch {
	case there:
		return false
	case page.count < fewInPage:
		page.few = slices.Insert(page.few, at, i)
		page.count++
	case !s.Full():
		page.spread(s)
		page.bits[i/64] |= 1 << (i % 64)
		page.count++
	}
	return true
}

// spread makes bits of the list.
func (p *page) spread(s *Set) {
	p.bits = new([pageBits / 64]uint64)
	for _, i := range p.few {
		p.bits[i/64] |= 1 << (i % 64)
	}
	p.few = nil
	s.bytes += bitsBytes
}

// RemoveSequence has n be met for the first time again.
func (s *Set) RemoveSequence(n uint64) {
	page, i := s.pages[n/pageBits], n%pageBits
	switch {
	case page == nil:
	case page.count == pageBits:
		page.spread(s)
		for word := range page.bits {
			page.bits[word] = ^uint64(0)
		}
		page.bits[i/64] &^= 1 << (i % 64)
		page.count--
	case page.bits == nil:
		if at, there := slices.BinarySearch(page.few, uint16(i)); there {
			page.few = slices.Delete(page.few, at, at+1)
			page.count--
		}
	case page.bits[i/64]&(1<<(i%64)) != 0:
		page.bits[i/64] &^= 1 << (i % 64)
		page.count--
	}
}

func (s *Set) page(n uint64) *page {
	if s.last != nil && s.number == n {
		return s.last
	}
	p := s.pages[n]
	if p == nil && !s.Full() {
		if s.pages == nil {
			s.pages = map[uint64]*page{}
		}
		p = new(page)
		s.pages[n] = p
		s.bytes += pageBytes
	}
	s.last, s.number = p, n
	return p
}

// IDs is a Set for ids of all kinds: those without numbers are kept as they are, so many at most. The zero IDs has met none.
type IDs struct {
	// Unnumbered says that ids of eight bytes are no numbers either.
	Unnumbered bool

	set    Set
	others map[string]struct{}
}

// maxOthers bounds the ids without numbers that are kept in memory.
const maxOthers = 1 << 20

// Add says whether id is met for the first time. sure is false when there is no more room, so that nobody knows.
func (s *IDs) Add(id layout.RecordID) (first, sure bool) {
	if n, numbered := id.Sequence(); numbered && !s.Unnumbered {
		sure = !s.set.Full()
		return s.set.AddSequence(n), sure
	}
	if _, again := s.others[string(id)]; again {
		return false, true
	}
	if len(s.others) == maxOthers {
		return true, false
	}
	if s.others == nil {
		s.others = map[string]struct{}{}
	}
	s.others[string(id)] = struct{}{}
	return true, true
}
