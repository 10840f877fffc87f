package storage

import (
	"math/rand/v2"
	"testing"
)

// TestSeen holds a Seen to a set, over lists, bits and full pages.
func TestSeenAgainstASet(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	var s Seen
	met := map[uint64]bool{}
	next := uint64(0)
	for range 200_000 {
		var n uint64
		switch r.IntN(4) {
		case 0:
			n = r.Uint64N(40) * 100_000 // far apart
		case 1:
			n = 1<<30 + r.Uint64N(2*seenPageBits)
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
	if s.bytes > 40*seenPageBytes+(2+40)*(seenPageBytes+seenBitsBytes) {
		t.Errorf("%d bytes", s.bytes)
	}
}

// TestSeenIsBounded: once it is full, what it has met it still knows.
func TestSeenIsBounded(t *testing.T) {
	var s Seen
	n := uint64(0)
	for ; !s.Full(); n++ {
		if !s.AddSequence(n * seenPageBits) {
			t.Fatalf("%d was not met before", n)
		}
	}
	if n < maxSeenBytes/seenPageBytes/2 {
		t.Errorf("full with %d", n)
	}
	for range 2 { // it is not remembered, so it is new each time
		if !s.AddSequence(2*n*seenPageBits) || len(s.pages) != int(n) {
			t.Error("it grows on")
		}
	}
	if s.AddSequence(0) || s.AddSequence((n-1)*seenPageBits) {
		t.Error("it forgets")
	}
	for i := range uint64(2 * fewSeen) {
		s.AddSequence(i)
	}
	if s.bytes > maxSeenBytes {
		t.Errorf("%d bytes", s.bytes)
	}
}
