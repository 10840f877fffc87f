// Package rangetombstone is which ranges of keys are deleted in an engine whose store cannot delete a range at once: the keys lie there still, and
// whoever reads passes over them, until they are removed one by one. It does not know where its Sets are stored.
//
// A range tombstone covers the keys that were written by commits with lower numbers than its own. What is written in its range later has to tell its
// number, and what does not tell one is covered.
package rangetombstone

import (
	"bytes"
	"slices"

	"github.com/ebbdb/ebb/internal/kv"
)

// Tombstone is one range tombstone.
type Tombstone struct {
	kv.Range
	// Number is that of the commit that has deleted the range.
	Number uint64
	// Written says that something may have been written in the range since, or by the same commit. If not, nothing in it is to be seen.
	Written bool
}

func (t Tombstone) equal(o Tombstone) bool {
	return t.Number == o.Number && t.Written == o.Written && bytes.Equal(t.Start, o.Start) && bytes.Equal(t.End, o.End)
}

// Set is tombstones that do not overlap, in the order of their ranges. It does not change, so that each view of a store has its own. The nil Set is empty.
type Set struct{ all []Tombstone }

// SetOf is the Set of tombstones that do not overlap.
func SetOf(all []Tombstone) *Set {
	all = slices.Clone(all)
	slices.SortFunc(all, func(a, b Tombstone) int { return bytes.Compare(a.Start, b.Start) })
	return &Set{all}
}

// Len is how many tombstones there are.
func (s *Set) Len() int {
	if s == nil {
		return 0
	}
	return len(s.all)
}

// All are the tombstones.
func (s *Set) All() []Tombstone {
	if s == nil {
		return nil
	}
	return s.all
}

// behind is the place of the first tombstone that ends behind key.
func (s *Set) behind(key []byte) int {
	all := s.All()
	i, _ := slices.BinarySearchFunc(all, key, func(t Tombstone, key []byte) int {
		if bytes.Compare(t.End, key) <= 0 {
			return -1
		}
		return 1
	})
	return i
}

// Covering is the tombstone in whose range key lies.
func (s *Set) Covering(key []byte) (Tombstone, bool) {
	if s.Len() == 0 {
		return Tombstone{}, false
	}
	if i := s.behind(key); i < len(s.all) && bytes.Compare(s.all[i].Start, key) <= 0 {
		return s.all[i], true
	}
	return Tombstone{}, false
}

// Hides says whether what the commit with a number has written at key is deleted; 0 stands for a number that is not told.
func (s *Set) Hides(key []byte, number uint64) bool {
	t, covered := s.Covering(key)
	return covered && number < t.Number
}

// Deleted is s after the commit with a number, higher than all before, has deleted a range. What was deleted there before is deleted still.
// Tombstones side by side become one, but for the one that apart says so of: who removes its keys wants to find it again.
func (s *Set) Deleted(r kv.Range, number uint64, apart func(Tombstone) bool) *Set {
	if bytes.Compare(r.Start, r.End) >= 0 {
		return s
	}
	one := Tombstone{Range: kv.Range{Start: slices.Clone(r.Start), End: slices.Clone(r.End)}, Number: number}
	out := make([]Tombstone, 0, s.Len()+2)
	for _, t := range s.All() {
		if bytes.Compare(t.Start, one.Start) < 0 {
			left := t
			left.End = smaller(t.End, one.Start)
			out = append(out, left)
		}
	}
	if n := len(out); n > 0 && joins(out[n-1], one, apart) {
		one.Start = out[n-1].Start
		out = out[:n-1]
	}
	out = append(out, one)
	for _, t := range s.All() {
		if bytes.Compare(t.End, one.End) <= 0 {
			continue
		}
		right := t
		right.Start = larger(t.Start, one.End)
		if last := &out[len(out)-1]; last.Number == number && joins(right, *last, apart) {
			last.End = right.End
			continue
		}
		out = append(out, right)
	}
	return &Set{out}
}

// joins says whether t and one, which is younger, have no key between them and may be one: nothing in t is to be seen, so it may have the number of one.
func joins(t, one Tombstone, apart func(Tombstone) bool) bool {
	return !t.Written && !apart(t) && (bytes.Equal(t.End, one.Start) || bytes.Equal(one.End, t.Start))
}

// Wrote is s after something was written at key. It is Written from there on: what is written one behind the other cuts a tombstone once.
func (s *Set) Wrote(key []byte) *Set {
	t, covered := s.Covering(key)
	if !covered || t.Written {
		return s
	}
	i := s.behind(key)
	right := t
	right.Start, right.Written = slices.Clone(key), true
	out := append(make([]Tombstone, 0, len(s.all)+1), s.all[:i]...)
	if bytes.Compare(t.Start, key) < 0 {
		left := t
		left.End = right.Start
		out = append(out, left)
	}
	rest := s.all[i+1:]
	if len(rest) > 0 && rest[0].Written && rest[0].Number == t.Number && bytes.Equal(rest[0].Start, t.End) {
		right.End, rest = rest[0].End, rest[1:]
	}
	return &Set{append(append(out, right), rest...)}
}

// Without is s without what has a number in a range: all that is deleted by it there is gone.
func (s *Set) Without(r kv.Range, number uint64) *Set {
	out := make([]Tombstone, 0, s.Len()+1)
	for _, t := range s.All() {
		if t.Number != number || bytes.Compare(t.End, r.Start) <= 0 || bytes.Compare(t.Start, r.End) >= 0 {
			out = append(out, t)
			continue
		}
		if bytes.Compare(t.Start, r.Start) < 0 {
			left := t
			left.End = r.Start
			out = append(out, left)
		}
		if bytes.Compare(t.End, r.End) > 0 {
			right := t
			right.Start = r.End
			out = append(out, right)
		}
	}
	return &Set{out}
}

// Skip is the first key from key on that is in no range of which nothing is to be seen.
func (s *Set) Skip(key []byte) []byte {
	for i := s.behind(key); i < s.Len() && !s.all[i].Written && bytes.Compare(s.all[i].Start, key) <= 0; i++ {
		key = s.all[i].End
	}
	return key
}

// Until is where the next range begins of which nothing is to be seen, from key on, or limit if that comes before.
func (s *Set) Until(key, limit []byte) []byte {
	for i := s.behind(key); i < s.Len() && bytes.Compare(s.all[i].Start, limit) < 0; i++ {
		if !s.all[i].Written {
			return larger(s.all[i].Start, key)
		}
	}
	return limit
}

// SkipBack is where the keys before key end that are in no range of which nothing is to be seen.
func (s *Set) SkipBack(key []byte) []byte {
	for i := s.before(key); i >= 0 && !s.all[i].Written && bytes.Compare(s.all[i].End, key) >= 0; i-- {
		key = s.all[i].Start
	}
	return key
}

// UntilBack is where the last range ends before key of which nothing is to be seen, or limit if that comes behind.
func (s *Set) UntilBack(key, limit []byte) []byte {
	for i := s.before(key); i >= 0 && bytes.Compare(s.all[i].End, limit) > 0; i-- {
		if !s.all[i].Written {
			return smaller(s.all[i].End, key)
		}
	}
	return limit
}

// before is the place of the last tombstone that begins before key.
func (s *Set) before(key []byte) int {
	i, _ := slices.BinarySearchFunc(s.All(), key, func(t Tombstone, key []byte) int {
		if bytes.Compare(t.Start, key) < 0 {
			return -1
		}
		return 1
	})
	return i - 1
}

// IsWritten says whether any tombstone in a range is Written: only then some pairs there have to be looked at.
func (s *Set) IsWritten(r kv.Range) bool {
	for i := s.behind(r.Start); i < s.Len() && bytes.Compare(s.all[i].Start, r.End) < 0; i++ {
		if s.all[i].Written {
			return true
		}
	}
	return false
}

// Changes are what makes s of before: the tombstones that are new or different, and where others began.
func (s *Set) Changes(before *Set) (put []Tombstone, gone [][]byte) {
	if s == before {
		return nil, nil
	}
	a, b := before.All(), s.All()
	for len(a) > 0 || len(b) > 0 {
		switch {
		case len(b) == 0 || len(a) > 0 && bytes.Compare(a[0].Start, b[0].Start) < 0:
			gone = append(gone, a[0].Start)
			a = a[1:]
		case len(a) == 0 || bytes.Compare(a[0].Start, b[0].Start) > 0:
			put = append(put, b[0])
			b = b[1:]
		default:
			if !a[0].equal(b[0]) {
				put = append(put, b[0])
			}
			a, b = a[1:], b[1:]
		}
	}
	return put, gone
}

func smaller(a, b []byte) []byte {
	if bytes.Compare(a, b) <= 0 {
		return a
	}
	return b
}

func larger(a, b []byte) []byte {
	if bytes.Compare(a, b) >= 0 {
		return a
	}
	return b
}
