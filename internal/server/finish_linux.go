package server

import (
	"slices"
	"sync"
)

// finisher gives the replies that waited for a disk. What one sync has brought is done by one goroutine.
type finisher struct {
	poller *poller

	mu struct {
		sync.Mutex
		waiting []*Conn
		done    int        // of those at the front
		turn    *finishing // the goroutine that is at it
	}
}

// finishing is the task to give what replies there are, as lead is to look for requests.
type finishing struct{ finisher *finisher }

// add has c's pending request finished.
func (f *finisher) add(c *Conn) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.mu.done > 0 && len(f.mu.waiting) == cap(f.mu.waiting) {
		f.mu.waiting = slices.Delete(f.mu.waiting, 0, f.mu.done)
		f.mu.done = 0
	}
	f.mu.waiting = append(f.mu.waiting, c)
	if f.mu.turn == nil {
		f.start()
	}
}

// start has a new goroutine go on. The caller holds mu.
func (f *finisher) start() {
	f.mu.turn = &finishing{f}
	f.poller.over.Go(f.mu.turn.run)
}

func (t *finishing) run() {
	for c := t.next(); c != nil; c = t.next() {
		c.turn = t
		t.finisher.poller.server.finish(c)
	}
}

// next is whose reply is next; nil when there is none or the task has been given away.
func (t *finishing) next() *Conn {
	f := t.finisher
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.mu.turn != t {
		return nil
	}
	if f.mu.done == len(f.mu.waiting) {
		f.mu.turn, f.mu.waiting, f.mu.done = nil, f.mu.waiting[:0], 0
		return nil
	}
	c := f.mu.waiting[f.mu.done]
	f.mu.waiting[f.mu.done] = nil
	f.mu.done++
	return c
}

// give is turn's.
func (t *finishing) give() {
	f := t.finisher
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.mu.turn == t {
		f.start()
	}
}
