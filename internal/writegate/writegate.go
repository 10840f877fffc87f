// Package writegate holds writers up: fsync with lock shuts the gate, which waits for the writers inside to leave and lets
// no other in until it is opened again. It does not know what is written.
package writegate

import (
	"context"
	"sync"
)

// Gate is open at first. Whoever writes enters once an operation, and leaves; it must not enter again while inside, for a
// gate that is being shut between the two would never close.
type Gate struct {
	mu struct {
		sync.Mutex
		inside int
		// locks counts who keeps the gate shut; shutting counts who is about to.
		locks, shutting int64
		// opened is closed when writers may enter again, drained when the last one has left; nil when nobody waits.
		opened, drained chan struct{}
	}
}

// Enter waits until the gate is open, or until ctx ends, whose cause it then returns. Leave follows where it did not.
func (g *Gate) Enter(ctx context.Context) error {
	for {
		g.mu.Lock()
		if g.mu.locks == 0 && g.mu.shutting == 0 {
			g.mu.inside++
			g.mu.Unlock()
			return nil
		}
		if g.mu.opened == nil {
			g.mu.opened = make(chan struct{})
		}
		opened := g.mu.opened
		g.mu.Unlock()
		select {
		case <-opened:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// TryEnter is Enter for who would rather not write than wait.
func (g *Gate) TryEnter() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.mu.locks > 0 || g.mu.shutting > 0 {
		return false
	}
	g.mu.inside++
	return true
}

// Leave ends what Enter or TryEnter began.
func (g *Gate) Leave() {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.mu.inside == 0 {
		panic("writegate: left more often than entered")
	}
	if g.mu.inside--; g.mu.inside == 0 {
		wake(&g.mu.drained)
	}
}

// Shut takes one lock and returns how many there are then. It waits until all writers have left; when ctx ends before,
// the gate is as it was.
func (g *Gate) Shut(ctx context.Context) (locks int64, err error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.mu.shutting++
	for g.mu.inside > 0 && err == nil {
		err = g.drain(ctx)
	}
	g.mu.shutting--
	if err != nil {
		g.reopen()
		return g.mu.locks, err
	}
	g.mu.locks++
	return g.mu.locks, nil
}

// drain lets go of the mutex until the last writer has left.
func (g *Gate) drain(ctx context.Context) error {
	if g.mu.drained == nil {
		g.mu.drained = make(chan struct{})
	}
	drained := g.mu.drained
	g.mu.Unlock()
	defer g.mu.Lock()
	select {
	case <-drained:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// Open gives one lock back and returns how many are left; ok is false when there was none.
func (g *Gate) Open() (locks int64, ok bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.mu.locks == 0 {
		return 0, false
	}
	g.mu.locks--
	g.reopen()
	return g.mu.locks, true
}

func (g *Gate) reopen() {
	if g.mu.locks == 0 && g.mu.shutting == 0 {
		wake(&g.mu.opened)
	}
}

func wake(c *chan struct{}) {
	if *c != nil {
		close(*c)
		*c = nil
	}
}

// Locks is how many keep the gate shut; 0 is an open one.
func (g *Gate) Locks() int64 {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.mu.locks
}
