package ownership

import (
	"context"
	"slices"
	"sync"
)

// lock is a Lock between goroutines. The zero lock is free.
type lock struct {
	mu        sync.Mutex // guards the rest, and is held for moments only
	shared    int
	exclusive bool
	waiting   []*waiter
}

type waiter struct {
	exclusive bool
	granted   chan struct{} // closed under mu when the lock is the waiter's
}

func (l *lock) free(exclusive bool) bool {
	return !l.exclusive && (!exclusive || l.shared == 0)
}

func (l *lock) take(exclusive bool) {
	if exclusive {
		l.exclusive = true
	} else {
		l.shared++
	}
}

// Try is Lock's.
func (l *lock) Try(exclusive bool) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.waiting) > 0 || !l.free(exclusive) {
		return false
	}
	l.take(exclusive)
	return true
}

// Acquire is Lock's.
func (l *lock) Acquire(ctx context.Context, exclusive bool) error {
	l.mu.Lock()
	if len(l.waiting) == 0 && l.free(exclusive) {
		l.take(exclusive)
		l.mu.Unlock()
		return nil
	}
	w := &waiter{exclusive, make(chan struct{})}
	l.waiting = append(l.waiting, w)
	l.mu.Unlock()
	select {
	case <-w.granted:
		return nil
	case <-ctx.Done():
		l.abandon(w)
		return context.Cause(ctx)
	}
}

// abandon takes w out of the queue, or gives back what it was granted in the meantime.
func (l *lock) abandon(w *waiter) {
	l.mu.Lock()
	defer l.mu.Unlock()
	i := slices.Index(l.waiting, w)
	if i < 0 {
		l.giveBack(w.exclusive)
		return
	}
	l.waiting = slices.Delete(l.waiting, i, i+1)
	l.grant()
}

// Release is Lock's.
func (l *lock) Release(exclusive bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.giveBack(exclusive)
}

func (l *lock) giveBack(exclusive bool) {
	if exclusive {
		l.exclusive = false
	} else {
		l.shared--
	}
	l.grant()
}

func (l *lock) grant() {
	for len(l.waiting) > 0 && l.free(l.waiting[0].exclusive) {
		w := l.waiting[0]
		l.waiting = l.waiting[1:]
		l.take(w.exclusive)
		close(w.granted)
	}
}
