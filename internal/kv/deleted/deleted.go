// Package deleted lists ranges of keys that were deleted, and when. It does not know who deletes them, nor what the keys mean.
package deleted

import (
	"bytes"
	"slices"
	"sort"

	"github.com/ebbdb/ebb/internal/kv"
)

// Ranges are deleted ranges in order, no two of which touch. A list is never changed.
type Ranges []Range

// Range is all keys of a deleted range.
type Range struct {
	kv.Range
	Sequence uint64 // of the youngest commit that deleted in it
	Living   int64  // about how many bytes were put there with the deletion
}

const (
	// MaxRanges bounds a list. What is swept of one collection is one range in the end, and another for each index.
	MaxRanges = 1024
	// sharedBytes is how much the two sides of a gap have in common where Closed closes it. Such a gap lies in the middle of what
	// ends piece by piece, and what was in it has ended too.
	sharedBytes = 6
)

// With is the list and r, which the commit numbered sequence deletes. Ranges that r touches become one with it, and count
// as deleted as late: a value too many is forgotten, never one too few.
func (l Ranges) With(r kv.Range, sequence uint64) Ranges {
	return l.Holding(Range{r, sequence, 0})
}

// Holding is With for a range in which something was put.
func (l Ranges) Holding(r Range) Ranges {
	first := sort.Search(len(l), func(i int) bool { return bytes.Compare(l[i].End, r.Start) >= 0 })
	after := first
	merged := r
	merged.Start, merged.End = bytes.Clone(r.Start), bytes.Clone(r.End)
	for ; after < len(l) && bytes.Compare(l[after].Start, r.End) <= 0; after++ {
		merged.Start = least(merged.Start, l[after].Start)
		merged.End = greatest(merged.End, l[after].End)
		merged.Sequence = max(merged.Sequence, l[after].Sequence)
		merged.Living += l[after].Living
	}
	return slices.Concat(l[:first], Ranges{merged}, l[after:])
}

// Closed is the list with its gaps closed whose sides have sharedBytes in common.
func (l Ranges) Closed() (closed Ranges) {
	for _, r := range l {
		last := len(closed) - 1
		if last < 0 || sharedPrefix(closed[last].End, r.Start) < sharedBytes {
			closed = append(closed, r)
			continue
		}
		closed[last].End = r.End
		closed[last].Sequence = max(closed[last].Sequence, r.Sequence)
		closed[last].Living += r.Living
	}
	return closed
}

func sharedPrefix(a, b []byte) (n int) {
	for n < min(len(a), len(b)) && a[n] == b[n] {
		n++
	}
	return n
}

// Find is the sequence of the range that has key; 0 if none has.
func (l Ranges) Find(key []byte) uint64 {
	i := sort.Search(len(l), func(i int) bool { return bytes.Compare(l[i].End, key) > 0 })
	if i == len(l) || !l[i].Contains(key) {
		return 0
	}
	return l[i].Sequence
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
