package pebblekv

import (
	"bytes"
	"slices"
	"sort"

	"github.com/ebbdb/ebb/internal/kv/overlay"
)

// ranges are deleted ranges in order, no two of which touch. A list is never changed.
type ranges []deletedRange

type deletedRange struct {
	overlay.Range
	sequence uint64 // of the youngest commit that deleted in it
	living   int64  // about how many bytes were put there with the deletion
}

const (
	// maxRanges bounds the list. What is swept of one collection is one range in the end, and another for each index.
	maxRanges = 1024
	// sharedBytes is how much the sides of a gap have in common that is closed: the gap is then in the middle of what ends
	// piece by piece, and what was in it has ended too.
	sharedBytes = 6
)

// with is the list and r, which the commit numbered sequence deletes. Ranges that r touches become one with it, and count
// as deleted as late: a value too many is forgotten, never one too few.
func (l ranges) with(r overlay.Range, sequence uint64) ranges {
	return l.holding(deletedRange{r, sequence, 0})
}

// holding is with for a range in which something was put.
func (l ranges) holding(r deletedRange) ranges {
	first := sort.Search(len(l), func(i int) bool { return bytes.Compare(l[i].End, r.Start) >= 0 })
	after := first
	merged := r
	merged.Start, merged.End = bytes.Clone(r.Start), bytes.Clone(r.End)
	for ; after < len(l) && bytes.Compare(l[after].Start, r.End) <= 0; after++ {
		merged.Start = least(merged.Start, l[after].Start)
		merged.End = greatest(merged.End, l[after].End)
		merged.sequence = max(merged.sequence, l[after].sequence)
		merged.living += l[after].living
	}
	return slices.Concat(l[:first], ranges{merged}, l[after:])
}

// closed is the list with its gaps closed whose sides have sharedBytes in common.
func (l ranges) closed() (closed ranges) {
	for _, r := range l {
		last := len(closed) - 1
		if last < 0 || sharedPrefix(closed[last].End, r.Start) < sharedBytes {
			closed = append(closed, r)
			continue
		}
		closed[last].End = r.End
		closed[last].sequence = max(closed[last].sequence, r.sequence)
		closed[last].living += r.living
	}
	return closed
}

func sharedPrefix(a, b []byte) (n int) {
	for n < min(len(a), len(b)) && a[n] == b[n] {
		n++
	}
	return n
}

// find is the sequence of the range that has key; 0 if none has.
func (l ranges) find(key []byte) uint64 {
	i := sort.Search(len(l), func(i int) bool { return bytes.Compare(l[i].End, key) > 0 })
	if i == len(l) || !l[i].Contains(key) {
		return 0
	}
	return l[i].sequence
}

func least(a, b []byte) []byte {
	if bytes.Compare(a, b) <= 0 {
		return a
	}
	return b
}

func greatest(a, b []byte) []byte {
	if bytes.Compare(a, b) >= 0 {
		return a
	}
	return b
}
