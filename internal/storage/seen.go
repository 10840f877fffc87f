package storage

import "slices"

// Seen tells records apart that a walk meets, also where they move in front of it: by their sequences, of which it keeps a page
// for every seenPageBits. The zero Seen has met none.
type Seen struct {
	pages map[uint64]*seenPage
	bytes int
	// last is the page that was used last, and its number.
	last   *seenPage
	number uint64
}

// seenPage has the sequences of a page: as a list while they are few, then as bits, and without either once it has all.
type seenPage struct {
	count int
	few   []uint16
	bits  *[seenPageBits / 64]uint64
}

const (
	seenPageBits = 1 << 13
	// maxSeenBytes bounds a Seen. Half a million records that lie far apart fit, or half a billion with gaps, or, of those that
	// were inserted one after the other, any number.
	maxSeenBytes = 64 << 20
	// A list is no longer than fewSeen, and a page without bits takes about seenPageBytes.
	fewSeen       = 32
	seenPageBytes = 128
	seenBitsBytes = seenPageBits / 8
)

// Add says whether id is met for the first time. Of ids that do not move, and perhaps once it is full, it says so always.
func (s *Seen) Add(id RecordID) bool {
	n, ok := id.Sequence()
	return !ok || s.AddSequence(n)
}

// Full says whether there may be records of which nobody knows whether they were met.
func (s *Seen) Full() bool { return s.bytes > maxSeenBytes-seenBitsBytes }

// AddSequence is Add for the number that an id has by Sequence.
func (s *Seen) AddSequence(n uint64) bool {
	page := s.page(n / seenPageBits)
	if page == nil {
		return true
	}
	i := n % seenPageBits
	if page.bits == nil {
		return s.addToList(page, uint16(i))
	}
	word, bit := &page.bits[i/64], uint64(1)<<(i%64)
	if *word&bit != 0 {
		return false
	}
	*word |= bit
	if page.count++; page.count == seenPageBits {
		page.bits = nil
		s.bytes -= seenBitsBytes
	}
	return true
}

func (s *Seen) addToList(page *seenPage, i uint16) bool {
	if page.count == seenPageBits {
		return false
	}
	at, there := len(page.few), false
	if at > 0 && page.few[at-1] >= i {
		at, there = slices.BinarySearch(page.few, i)
	}
	switch {
	case there:
		return false
	case page.count < fewSeen:
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
func (p *seenPage) spread(s *Seen) {
	p.bits = new([seenPageBits / 64]uint64)
	for _, i := range p.few {
		p.bits[i/64] |= 1 << (i % 64)
	}
	p.few = nil
	s.bytes += seenBitsBytes
}

// RemoveSequence has n be met for the first time again.
func (s *Seen) RemoveSequence(n uint64) {
	page, i := s.pages[n/seenPageBits], n%seenPageBits
	switch {
	case page == nil:
	case page.count == seenPageBits:
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

func (s *Seen) page(n uint64) *seenPage {
	if s.last != nil && s.number == n {
		return s.last
	}
	page := s.pages[n]
	if page == nil && !s.Full() {
		if s.pages == nil {
			s.pages = map[uint64]*seenPage{}
		}
		page = new(seenPage)
		s.pages[n] = page
		s.bytes += seenPageBytes
	}
	s.last, s.number = page, n
	return page
}
