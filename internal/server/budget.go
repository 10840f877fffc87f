package server

import (
	"slices"
	"sync"

	"github.com/ebbdb/ebb/internal/wire"
)

const (
	// inFlightBytes is the memory that large messages of all connections may take at one time, from their arrival until their
	// replies are written. A message that is smaller than what every connection may take anyhow counts for nothing. Where the
	// server has less memory, they may take a share of it.
	inFlightBytes = 16 * wire.MaxMessageSize
	inFlightShare = 4
	// smallReply is how large a reply may be that counts for nothing.
	smallReply = 64 << 10
)

// budget is a number of bytes that connections share. Who asks first is served first.
type budget struct {
	whole int64
	mu    struct {
		sync.Mutex
		free    int64
		waiting []*admission // one a connection at most
	}
}

// admission is a connection that waits for its bytes; ready is closed when it has them.
type admission struct {
	n     int64
	ready chan struct{}
}

func newBudget(whole int64) *budget {
	b := &budget{whole: whole}
	b.mu.free = whole
	return b
}

// acquire takes n bytes, all of them where n is more than there are in all, and waits until it can. It gives up, and says
// so, when stop closes.
func (b *budget) acquire(n int64, stop <-chan struct{}) (got int64, ok bool) {
	n = min(n, b.whole)
	b.mu.Lock()
	if len(b.mu.waiting) == 0 && b.mu.free >= n {
		b.mu.free -= n
		b.mu.Unlock()
		return n, true
	}
	w := &admission{n, make(chan struct{})}
	b.mu.waiting = append(b.mu.waiting, w)
	b.mu.Unlock()
	select {
	case <-w.ready:
		return n, true
	case <-stop:
		return b.leave(w)
	}
}

// leave takes w out of the queue, unless its bytes came meanwhile.
func (b *budget) leave(w *admission) (got int64, ok bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	i := slices.Index(b.mu.waiting, w)
	if i < 0 {
		return w.n, true
	}
	b.mu.waiting = slices.Delete(b.mu.waiting, i, i+1)
	b.serve()
	return 0, false
}

// crowded says whether anybody waits.
func (b *budget) crowded() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return len(b.mu.waiting) > 0
}

// release gives n bytes back.
func (b *budget) release(n int64) {
	if n == 0 {
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.mu.free += n
	b.serve()
}

// serve gives the first in the queue what they wait for, while there is enough. The caller holds the lock.
func (b *budget) serve() {
	for len(b.mu.waiting) > 0 && b.mu.waiting[0].n <= b.mu.free {
		w := b.mu.waiting[0]
		b.mu.waiting = slices.Delete(b.mu.waiting, 0, 1)
		b.mu.free -= w.n
		close(w.ready)
	}
}
