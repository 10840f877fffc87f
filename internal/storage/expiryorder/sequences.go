package expiryorder

import (
	"cmp"
	"encoding/binary"
	"slices"
)

// Sequences are numbers of records, as runs that ascend and leave gaps between them.
type Sequences []Run

// Run is the numbers from First on, so many.
type Run struct{ First, Length uint64 }

// MaxRuns is with how many runs a sweep spares records; with more of them it is not done at once.
const MaxRuns = 1024

// SequencesOf are the numbers, which it sorts.
func SequencesOf(numbers []uint64) (s Sequences) {
	slices.Sort(numbers)
	for _, n := range numbers {
		switch last := len(s) - 1; {
		case last < 0 || n > s[last].First+s[last].Length:
			s = append(s, Run{n, 1})
		case n == s[last].First+s[last].Length:
			s[last].Length++
		}
	}
	return s
}

// Has says whether n is one of them.
func (s Sequences) Has(n uint64) bool {
	if len(s) == 0 {
		return false
	}
	i, found := slices.BinarySearchFunc(s, n, func(r Run, n uint64) int { return cmp.Compare(r.First, n) })
	return found || i > 0 && n-s[i-1].First < s[i-1].Length
}

// append appends how many runs there are, and of each the first number, 8 bytes, and the length.
func (s Sequences) append(dst []byte) []byte {
	dst = binary.AppendUvarint(dst, uint64(len(s)))
	for _, r := range s {
		dst = binary.AppendUvarint(binary.BigEndian.AppendUint64(dst, r.First), r.Length)
	}
	return dst
}

// readSequences reads what append has written, and what is behind it.
func readSequences(b []byte) (s Sequences, rest []byte, ok bool) {
	count, n := binary.Uvarint(b)
	if n <= 0 || count == 0 || count > MaxRuns {
		return nil, nil, false
	}
	b = b[n:]
	for range count {
		if len(b) < 8 {
			return nil, nil, false
		}
		r := Run{First: binary.BigEndian.Uint64(b)}
		if r.Length, n = binary.Uvarint(b[8:]); n <= 0 || r.Length == 0 || r.First+r.Length < r.First {
			return nil, nil, false
		}
		if k := len(s); k > 0 && r.First <= s[k-1].First+s[k-1].Length {
			return nil, nil, false
		}
		s, b = append(s, r), b[8+n:]
	}
	return s, b, true
}
