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
}

// maxRanges bounds the list: a range for each collection that is swept, and one for each of its indexes.
const maxRanges = 256

// with is the list and r, which the commit numbered sequence deletes. Ranges that r touches become one with it, and count
// as deleted as late: a value too many is forgotten, never one too few.
func (l ranges) with(r overlay.Range, sequence uint64) ranges {
	first := sort.Search(len(l), func(i int) bool { return bytes.Compare(l[i].End, r.Start) >= 0 })
	after := first
	merged := deletedRange{overlay.Range{Start: bytes.Clone(r.Start), End: bytes.Clone(r.End)}, sequence}
	for ; after < len(l) && bytes.Compare(l[after].Start, r.End) <= 0; after++ {
		merged.Start = least(merged.Start, l[after].Start)
		merged.End = greatest(merged.End, l[after].End)
	}
	return slices.Concat(l[:first], ranges{merged}, l[after:])
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
