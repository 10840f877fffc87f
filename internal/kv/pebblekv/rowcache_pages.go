package pebblekv

import (
	"sync"
	"unsafe"
)

// hugePages has the memory of what is kept lie in huge pages: values are looked up in random order, and with small pages the
// processor has to find out where a page lies at nearly every one. It asks for a huge page only where most of it is
// kept, written to its end, and asked for: to make one takes a while, and it must not take memory that nobody uses.
type hugePages struct {
	// collapse makes a huge page of small ones; false means that the system does not do that.
	collapse func(page uintptr) bool

	mu      sync.Mutex           // guards all below
	kept    map[uintptr]int      // how many bytes of each page are
	due     map[uintptr]struct{} // the pages to ask for
	running bool                 // a goroutine asks for them
	unknown bool                 // to the system, what a huge page is
}

const (
	hugePage = 2 << 20
	// hugeEnough is how much of a huge page must be kept.
	hugeEnough = hugePage / 4 * 3
	// minHugePart is the smallest piece of memory that counts: of those that are kept there are few smaller ones.
	minHugePart = 32 << 10
)

func newHugePages() *hugePages {
	if !mayCollapse() {
		return nil
	}
	return &hugePages{collapse: collapse, kept: map[uintptr]int{}, due: map[uintptr]struct{}{}}
}

// keep counts a piece that is written and stays for a while.
func keep[T any](p *hugePages, piece []T) { p.count(extent(piece)) }

// release takes back what keep did.
func release[T any](p *hugePages, piece []T) {
	start, length := extent(piece)
	p.count(start, -length)
}

func extent[T any](piece []T) (start uintptr, length int) {
	var one T
	return uintptr(unsafe.Pointer(unsafe.SliceData(piece))), len(piece) * int(unsafe.Sizeof(one))
}

// count adds a piece, or takes one away whose length is negative.
func (p *hugePages) count(start uintptr, length int) {
	size, sign := length, 1
	if length < 0 {
		size, sign = -length, -1
	}
	if p == nil || size < minHugePart {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	for end := start + uintptr(size); start < end; {
		page := start &^ (hugePage - 1)
		next := min(page+hugePage, end)
		p.countIn(page, sign*int(next-start))
		start = next
	}
}

func (p *hugePages) countIn(page uintptr, n int) {
	before, now := p.kept[page], p.kept[page]+n
	p.kept[page] = now
	switch {
	case now == 0:
		delete(p.kept, page)
	case before < hugeEnough && now >= hugeEnough && !p.unknown:
		p.due[page] = struct{}{}
		p.start()
	}
}

func (p *hugePages) start() {
	if !p.running {
		p.running = true
		go p.run()
	}
}

// run asks for the pages that are due, and ends when none is.
func (p *hugePages) run() {
	for page, ok := p.next(); ok; page, ok = p.next() {
		if !p.collapse(page) {
			p.stop()
			return
		}
	}
}

// next is a page that is due.
func (p *hugePages) next() (page uintptr, ok bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for page := range p.due {
		delete(p.due, page)
		if p.kept[page] >= hugeEnough { // still
			return page, true
		}
	}
	p.running = false
	return 0, false
}

// stop ends run for good.
func (p *hugePages) stop() {
	p.mu.Lock()
	p.unknown = true
	clear(p.due)
	p.mu.Unlock()
}
