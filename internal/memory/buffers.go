package memory

import (
	"context"
	"math/bits"
	"slices"
	"sync"
	"time"
)

const (
	// minLent is the smallest piece that is lent, a power of two, and topLent the largest: a reply of the largest batch. What is
	// larger is made each time.
	minLent = 128 << 10
	topLent = 16<<20 + 64<<10
	// keptShare is which part of the memory buffers may have that nobody uses.
	keptShare = 8
	// trimEvery is how often those go that were not needed since the last time.
	trimEvery = 5 * time.Second
)

// buffers lends large pieces of memory, and keeps what comes back for the next one. Made anew for each use they would be
// garbage faster than the collector takes them away. What is kept counts as used until memory is short.
type buffers struct {
	mu   sync.Mutex
	free [][][]byte // by class, the one that came back last at the end
	kept int64
	// low is the least that was kept since it was trimmed.
	low int64
}

// sizeOf is the size of the smallest piece with room for n bytes, and its class, -1 for one that is not kept.
func sizeOf(n int) (size, class int) {
	switch {
	case n > topLent:
		return n, -1
	case n > topLent&^(minLent-1):
		return topLent, bits.Len(uint((topLent - 1) / minLent))
	}
	class = bits.Len(uint((max(n, minLent) - 1) / minLent))
	return minLent << class, class
}

// get is a piece of the class, or nil. Its bytes stay counted.
func (p *buffers) get(class int) []byte {
	p.mu.Lock()
	defer p.mu.Unlock()
	if class < 0 || class >= len(p.free) || len(p.free[class]) == 0 {
		return nil
	}
	last := len(p.free[class]) - 1
	b := p.free[class][last]
	p.free[class][last] = nil
	p.free[class] = p.free[class][:last]
	p.kept -= int64(cap(b))
	p.low = min(p.low, p.kept)
	return b
}

// put keeps b, unless more than keep bytes would be kept then. Its bytes must be counted.
func (p *buffers) put(b []byte, keep int64) bool {
	size, class := sizeOf(cap(b))
	p.mu.Lock()
	defer p.mu.Unlock()
	if class < 0 || size != cap(b) || p.kept+int64(size) > keep {
		return false
	}
	for len(p.free) <= class {
		p.free = append(p.free, nil)
	}
	p.free[class] = append(p.free[class], b[:0])
	p.kept += int64(size)
	return true
}

// drop lets go of want bytes at least, the largest pieces first, and says how many it was.
func (p *buffers) drop(want int64) (dropped int64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, pieces := range slices.Backward(p.free) {
		for i, b := range slices.Backward(pieces) {
			if dropped >= want {
				break
			}
			dropped += int64(cap(b))
			pieces[i] = nil
		}
	}
	for class, pieces := range p.free {
		p.free[class] = slices.DeleteFunc(pieces, func(b []byte) bool { return b == nil })
	}
	p.kept -= dropped
	p.low = min(p.low, p.kept)
	return dropped
}

func (p *buffers) isEmpty() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.kept == 0
}

// unneeded is how many bytes have been kept since it was asked last.
func (p *buffers) unneeded() int64 {
	p.mu.Lock()
	defer p.mu.Unlock()
	n := p.low
	p.low = p.kept
	return n
}

// dropBuffers lets go of about want bytes that buffers keep.
func (g *Governor) dropBuffers(want int64) int64 {
	dropped := g.buffers.drop(want)
	if dropped > 0 {
		g.release(Buffers, dropped)
	}
	return dropped
}

// trim lets go of buffers that nobody has needed lately.
func (g *Governor) trim() {
	if n := g.buffers.unneeded(); n > 0 {
		g.dropBuffers(n)
	}
}

// Enlarge is what buf holds in memory with room for n bytes, which the account takes, or nil when that is not there. The
// memory is lent: an account has one such piece at a time, and when it has another or is closed nobody may use it any more.
func (a *Account) Enlarge(buf []byte, n int) []byte {
	if a == nil || a.governor == nil {
		return append(make([]byte, 0, n), buf...)
	}
	size, class := sizeOf(n)
	b := a.governor.buffers.get(class)
	switch {
	case b != nil:
		a.adopt(int64(size))
	case !a.Take(int64(size)):
		return nil
	}
	return a.moveInto(b, size, buf)
}

// EnlargeWaiting is Enlarge that waits for a bounded time, and says why it gave up.
func (a *Account) EnlargeWaiting(ctx context.Context, buf []byte, n int) ([]byte, error) {
	if b := a.Enlarge(buf, n); b != nil {
		return b, nil
	}
	size, class := sizeOf(n)
	w := &waiter{kind: a.kind, n: a.lacks(int64(size)), held: a.granted + a.lacks(int64(size)), ready: make(chan struct{})}
	if class >= 0 {
		w.size = size
	}
	if err := a.governor.wait(ctx, w); err != nil {
		return nil, err
	}
	if w.lent != nil {
		a.adopt(int64(size))
	} else {
		a.granted += w.n
		a.used += int64(size)
	}
	return a.moveInto(w.lent, size, buf), nil
}

func (a *Account) moveInto(b []byte, size int, buf []byte) []byte {
	if b == nil {
		b = make([]byte, 0, size)
	}
	b = append(b, buf...)
	a.giveBuffer()
	a.lent = b[:0]
	return b
}

// adopt takes n bytes that are counted already.
func (a *Account) adopt(n int64) {
	a.used += n
	a.granted += n
	a.governor.move(Buffers, a.kind, n)
}

// giveBuffer gives the piece back that is lent.
func (a *Account) giveBuffer() {
	b := a.lent
	if b == nil {
		return
	}
	a.lent = nil
	n, g := int64(cap(b)), a.governor
	if lacks := n - a.granted; lacks > 0 { // what an account need not ask for
		g.charge(a.kind, lacks)
		a.granted += lacks
	}
	g.move(a.kind, Buffers, n)
	a.used -= n
	a.granted -= n
	switch {
	case g.handOver(b):
	case g.buffers.put(b, g.total/keptShare):
		g.relieveWaiting()
	default:
		g.release(Buffers, n)
	}
}

// relieveWaiting has those who wait given what there is to give.
func (g *Governor) relieveWaiting() {
	g.mu.Lock()
	defer g.mu.Unlock()
	if len(g.mu.waiting) > 0 {
		g.relieve()
	}
}

// handOver gives b to the first who waits for such a piece, and says whether there is one.
func (g *Governor) handOver(b []byte) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	for i, w := range g.mu.waiting {
		if w.size == cap(b) {
			g.mu.waiting = slices.Delete(g.mu.waiting, i, i+1)
			w.lent = b
			close(w.ready)
			return true
		}
	}
	return false
}
