package pebblekv

import (
	"slices"
	"testing"
	"testing/synctest"
)

// A huge page is asked for when most of it is kept, once for each time, and not when it is no longer.
func TestHugePages(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var asked []uintptr
		known := true
		p := &hugePages{kept: map[uintptr]int{}, due: map[uintptr]struct{}{}}
		p.collapse = func(page uintptr) bool { asked = append(asked, page/hugePage); return known }
		const quarter = hugePage / 4
		for i, step := range []struct {
			start, length int // in quarters of a page
			known         bool
			want          []uintptr
		}{
			{0, 2, true, nil},
			{2, 2, true, []uintptr{0}},       // all of the first
			{5, 2, true, nil},                // half of the second
			{7, 9, true, []uintptr{1, 3, 2}}, // the rest of it and two more
			{0, -2, true, nil},
			{0, 1, true, []uintptr{0}},
			{5, -11, true, nil},
			{5, 3, false, []uintptr{1}}, // the system does not know them
			{8, 8, true, nil},
		} {
			asked, known = nil, step.known
			p.count(uintptr(step.start)*quarter, step.length*quarter)
			synctest.Wait()
			slices.Sort(asked)
			slices.Sort(step.want)
			if !slices.Equal(asked, step.want) {
				t.Errorf("step %d: asked for %v, want %v", i, asked, step.want)
			}
		}
	})
}

// What is kept is counted for as long as it is kept: at the end there is no more than what is there.
func TestHugePagesOfAFullStore(t *testing.T) {
	h := newRowCache(cacheShards * cacheChunks * 2 * minHugePart)
	p := &hugePages{kept: map[uintptr]int{}, due: map[uintptr]struct{}{}, unknown: true}
	for i := range h.shards {
		h.shards[i].pages = p
	}
	for i := range 200_000 {
		key := benchKey(i)
		h.offer(h.hash(key), key, make([]byte, 200), 1)
		if i%3 > 0 {
			h.get(h.hash(key), key, 1)
		}
		if i%64 == 0 {
			h.get(h.hash(benchKey(i/2)), benchKey(i/2), 1)
		}
	}
	want, got := 0, 0
	for i := range h.shards {
		s := &h.shards[i]
		for i, c := range s.chunks {
			if i < len(s.chunks)-1 && c.isAsked() {
				want += len(c.data)
			}
		}
		if size := 8 * len(s.view.Load().table.slots); size >= minHugePart {
			want += size
		}
	}
	for _, n := range p.kept {
		got += n
	}
	if got != want || got == 0 {
		t.Errorf("%d bytes are counted, and %d kept", got, want)
	}
}
