package ownership

import (
	"context"
	"slices"
	"sync"
)

// Lock is held shared by those who write a collection's documents and exclusively by those who change what the
// collection is. Whoever came first is served first, so neither kind starves the other. The zero Lock is free.
type Lock struct {
	mu        sync.Mutex // guards the rest, and is held for moments only
	shared    int
	exclusive bool
	waiting   []*waiter
}

type waiter struct {
	exclusive bool
	granted   chan struct{} // closed under mu when the lock is the waiter's
}

func (l *Lock) free(exclusive bool) bool {
	return !l.exclusive && (!exclusive || l.shared == 0)
}

func (l *Lock) take(exclusive bool) {
	if exclusive {
		l.exclusive = true
	} else {
		l.shared++
	}
}

// Try takes the lock when that needs no waiting.
func (l *Lock) Try(exclusive bool) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.waiting) > 0 || !l.free(exclusive) {
		return false
	}
	l.take(exclusive)
	return true
}

// Acquire waits for the lock until ctx ends.
func (l *Lock) Acquire(ctx context.Context, exclusive bool) error {
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
func (l *Lock) abandon(w *waiter) {
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

// Release gives it back.
func (l *Lock) Release(exclusive bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.giveBack(exclusive)
}

func (l *Lock) giveBack(exclusive bool) {
	if exclusive {
		l.exclusive = false
	} else {
		l.shared--
	}
	l.grant()
}

func (l *Lock) grant() {
	for len(l.waiting) > 0 && l.free(l.waiting[0].exclusive) {
		w := l.waiting[0]
		l.waiting = l.waiting[1:]
		l.take(w.exclusive)
		close(w.granted)
	}
}

// AcquireAll takes locks exclusively, one after the other, or none. release gives them back, the last first.
func AcquireAll(ctx context.Context, locks []*Lock) (release func(), err error) {
	for i, l := range locks {
		if err := l.Acquire(ctx, true); err != nil {
			releaseAll(locks[:i])
			return nil, err
		}
	}
	return func() { releaseAll(locks) }, nil
}

func releaseAll(locks []*Lock) {
	for _, l := range slices.Backward(locks) {
		l.Release(true)
	}
}
