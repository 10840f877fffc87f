package main

import "testing"

func TestGiveBackIsDue(t *testing.T) {
	const mb = 1 << 20
	for _, c := range []struct {
		name               string
		now, before, given heapState
		want               bool
	}{
		{"after a load", heapState{3000 * mb, 500 * mb, 90_000 * mb}, heapState{3000 * mb, 500 * mb, 89_990 * mb}, heapState{}, true},
		{"under load", heapState{3000 * mb, 500 * mb, 90_000 * mb}, heapState{3000 * mb, 500 * mb, 89_000 * mb}, heapState{}, false},
		{"nothing to give", heapState{550 * mb, 500 * mb, 90_000 * mb}, heapState{550 * mb, 500 * mb, 90_000 * mb}, heapState{}, false},
		{"given already", heapState{700 * mb, 500 * mb, 90_010 * mb}, heapState{700 * mb, 500 * mb, 90_005 * mb}, heapState{600 * mb, 500 * mb, 90_000 * mb}, false},
	} {
		if got := c.now.isDue(c.before, c.given); got != c.want {
			t.Errorf("%s: %v", c.name, got)
		}
	}
	if h := lookAtHeap(); h.held == 0 || h.allocated == 0 || h.held < h.alive {
		t.Errorf("%+v", h)
	}
}
