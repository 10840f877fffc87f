package server

import (
	"runtime"
	"sync/atomic"
	"time"

	"github.com/ebbdb/ebb/internal/clock"
)

// yieldAfter is how long the lead goes on until it lets Go's scheduler choose anew. A goroutine that has not done so for 10 ms
// is taken for one that runs too long, and as long as there is one the scheduler's watchman goes round every 20 µs.
const yieldAfter = 8 * time.Millisecond

// lead is the task to look at a poller's sockets and to answer their requests, which one goroutine has at a time. Who has
// something to do that may last gives the lead to a new goroutine and goes on without it.
type lead struct {
	poller *poller
	// steps is odd while a connection is served; it belongs to the lead's goroutine, and others look at it.
	steps atomic.Int64
}

// run leads until the lead is given away or the poller ends.
func (l *lead) run() {
	p := l.poller
	for began := clock.Wall().Now(); ; {
		if clock.Since(clock.Wall(), began) >= yieldAfter {
			runtime.Gosched()
			began = clock.Wall().Now()
		}
		for s := p.next(); s != nil; s = p.next() {
			if s.take() && !l.serve(s.conn) {
				return
			}
		}
		if ended := p.look(); ended {
			return
		}
		p.server.polling.rouse()
	}
}

// serve answers what has arrived for c, and says whether l still leads.
func (l *lead) serve(c *Conn) bool {
	steps := l.steps.Load()
	l.steps.Store(steps + 1)
	c.turn, c.drained = l, false
	l.poller.server.attend(c)
	l.steps.Store(steps + 2)
	return l.poller.lead.Load() == l
}

// give is turn's: somebody else leads from now on.
func (l *lead) give() {
	next := &lead{poller: l.poller}
	if l.poller.lead.CompareAndSwap(l, next) {
		l.poller.over.Go(next.run)
	}
}
