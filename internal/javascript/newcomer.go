package javascript

import (
	"context"
	"errors"
	"sync"

	"github.com/ebbdb/ebb/internal/memory"
)

// newcomer is a call that has its turn and waits for a worker because there is no memory to start one.
type newcomer struct {
	ctx       context.Context
	cancel    context.CancelCauseFunc
	given     chan *worker // holds the one that somebody has handed over
	mu        sync.Mutex   // guards interrupt, which is nil when the wait is over
	interrupt func() error
}

// errLookAgain ends the wait of a newcomer that may find a worker now.
var errLookAgain = errors.New("a worker may be there")

// enqueue has a newcomer wait. The caller holds the lock.
func (p *pool) enqueue(interrupt func() error) *newcomer {
	n := &newcomer{interrupt: interrupt, given: make(chan *worker, 1)}
	n.ctx, n.cancel = context.WithCancelCause(context.Background())
	p.mu.waiting = append(p.mu.waiting, n)
	return n
}

// await waits until n is given a worker, or has room for one more, or may look again; the Governor bounds the wait.
func (p *pool) await(n *newcomer, room *memory.Account) (*worker, error) {
	p.patrol.begin()
	err := room.Wait(n.ctx, p.least())
	p.patrol.finish()
	n.end()
	p.mu.Lock()
	for i, other := range p.mu.waiting {
		if other == n {
			p.mu.waiting = append(p.mu.waiting[:i], p.mu.waiting[i+1:]...)
			break
		}
	}
	p.mu.Unlock()
	select {
	case w := <-n.given:
		return w, nil
	default:
	}
	if err == errLookAgain {
		err = nil
	}
	return nil, err
}

// handOver gives a worker in a call to the newcomer that has waited for longest, or with nil has that one look again. It
// says whether there was one. The caller holds the lock.
func (p *pool) handOver(w *worker) bool {
	if len(p.mu.waiting) == 0 {
		return false
	}
	n := p.mu.waiting[0]
	p.mu.waiting = p.mu.waiting[1:]
	if w != nil {
		n.given <- w
	}
	n.cancel(errLookAgain)
	return true
}

// end has nobody asked any more.
func (n *newcomer) end() {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.interrupt = nil
	n.cancel(nil)
}

// look ends the wait when the operation ends.
func (n *newcomer) look() {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.interrupt == nil || n.ctx.Err() != nil {
		return
	}
	if err := n.interrupt(); err != nil {
		n.cancel(err)
	}
}
