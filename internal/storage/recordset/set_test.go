package recordset

import (
	"math/rand/v2"
	"testing"

	"github.com/ebbdb/ebb/internal/storage/layout"
)

// TestAgainstAMap holds a Set to a map, over lists, bits and full pages.
func TestAgainstAMap(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	var s Set
	met := map[uint64]bool{}
	next := uint64(0)
	for range 200_000 {
		var n uint64
		switch r.IntN(4) {
		case 0:
			n = r.Uint64N(40) * 100_000 // far apart
		case 1:
			n = 1<<30 + r.Uint64N(2*pageBits)
		default:
			n = 1<<40 + next
			next++
		}
		if r.IntN(10) == 0 {
			s.RemoveSequence(n)
			delete(met, n)
			continue
		}
		if first := s.AddSequence(n); first == met[n] {
			t.Fatalf("%d is met for the first time: %v", n, first)
		}
		met[n] = true
	}
	if s.bytes > 40*pageBytes+(2+40)*(pageBytes+bitsBytes) {
		t.Errorf("%d bytes", s.bytes)
	}
}

// TestSeenIsBounded: once it is full, what it has met it still knows.
func TestSeenIsBounded(t *testing.T) {
	var s Set
	n := uint64(0)
	for ; !s.Full(); n++ {
		if !s.AddSequence(n * pageBits) {
			t.Fatalf("%d was not met before", n)
		}
	}
	if n < maxBytes/pageBytes/2 {
		t.Errorf("full with %d", n)
	}
	for range 2 { // it is not remembered, so it is new each time
		if !s.AddSequence(2*n*pageBits) || len(s.pages) != int(n) {
			t.Error("it grows on")
		}
	}
	if s.AddSequence(0) || s.AddSequence((n-1)*pageBits) {
		t.Error("it forgets")
	}
	for i := range uint64(2 * fewInPage) {
		s.AddSequence(i)
	}
	if s.bytes > maxBytes {
		t.Errorf("%d bytes", s.bytes)
	}
}

// TestMoved: records are told apart by what stays when they move.
func TestMoved(t *testing.T) {
	var s Set
	a, b := layout.OrderedID(layout.AppendPlace(nil, 7, layout.OnDefault, 1), 5), layout.OrderedID(layout.AppendPlace(nil, 7, layout.OnNever, 2), 5)
	for i, c := range []struct {
		id   layout.RecordID
		want bool
	}{{a, true}, {b, false}, {layout.SequenceID(5), false}, {layout.SequenceID(6), true}, {layout.SequenceID(1 << 40), true}, {layout.SequenceID(1 << 40), false},
		{layout.RecordID("a key"), true}, {layout.RecordID("a key"), true}} {
		if got := s.Add(c.id); got != c.want {
			t.Errorf("%d: %s is new: %v", i, c.id, got)
		}
	}
}

// TestIDs: ids without numbers are told apart by what they are, and those of eight bytes too where they are no numbers.
func TestIDs(t *testing.T) {
	for _, unnumbered := range []bool{false, true} {
		ids := IDs{Unnumbered: unnumbered}
		for i, c := range []struct {
			id   string
			want bool
		}{{"a key", true}, {"a key", false}, {"eightlet", true}, {"eightlet", false}, {"eightles", true}} {
			if first, sure := ids.Add(layout.RecordID(c.id)); first != c.want || !sure {
				t.Errorf("%d: %s is new: %v, %v", i, c.id, first, sure)
			}
		}
	}
}
