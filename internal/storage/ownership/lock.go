package ownership

import (
	"context"
	"slices"
	"sync"
)

// lock is a Lock between goroutines. The zero lock is free.
type lock struct {
	mu      sync.Mutex // guards the rest, and is held for moments only
	shared  int        // Shared and Statement
	lasting int
	alone   Mode // Exclusive or Sweeping when somebody holds it so; Shared otherwise
	waiting []*waiter
}

type waiter struct {
	mode    Mode
	granted chan struct{} // closed under mu when the lock is the waiter's
}

func (l *lock) free(mode Mode) bool {
	switch mode {
	case Lasting:
		return l.alone != Exclusive
	case Sweeping:
		return l.alone == Shared && l.shared == 0
	case Exclusive:
		return l.alone == Shared && l.shared == 0 && l.lasting == 0
	default:
		return l.alone == Shared
	}
}

func (l *lock) take(mode Mode) {
	switch mode {
	case Lasting:
		l.lasting++
	case Sweeping, Exclusive:
		l.alone = mode
	default:
		l.shared++
	}
}

// Try is Lock's.
func (l *lock) Try(mode Mode) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.waiting) > 0 || !l.free(mode) {
		return false
	}
	l.take(mode)
	return true
}

// Acquire is Lock's.
func (l *lock) Acquire(ctx context.Context, mode Mode) error {
	l.mu.Lock()
	if len(l.waiting) == 0 && l.free(mode) {
		l.take(mode)
		l.mu.Unlock()
		return nil
	}
	w := &waiter{mode, make(chan struct{})}
	l.waiting = append(l.waiting, w)
	l.grant() // it may pass those before it
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
		l.giveBack(w.mode)
		return
	}
	l.waiting = slices.Delete(l.waiting, i, i+1)
	l.grant()
}

// Release is Lock's.
func (l *lock) Release(mode Mode) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.giveBack(mode)
}

// IsLasting is Lock's.
func (l *lock) IsLasting() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.lasting > 0
}

func (l *lock) giveBack(mode Mode) {
	switch mode {
	case Lasting:
		l.lasting--
	case Sweeping, Exclusive:
		l.alone = Shared
	default:
		l.shared--
	}
	l.grant()
}

// grant gives the lock to those who may have it, first come, first served. Two kinds of waiters are passed by others:
//
//   - one who wants it exclusively while somebody lasts on it has to wait for the end of that. Statements go on meanwhile, or it would
//     wait for itself, and so do sweeps, which it would keep waiting as long as it waits itself;
//   - one who waits for statements to end, or for a sweep, is no obstacle to who lasts: that waits for neither.
func (l *lock) grant() {
	if len(l.waiting) == 0 {
		return
	}
	var passes [Modes]bool // past those who have been met and still wait; of each kind
	for mode := range passes {
		passes[mode] = true
	}
	l.waiting = slices.DeleteFunc(l.waiting, func(w *waiter) bool {
		if passes[w.mode] && l.free(w.mode) {
			l.take(w.mode)
			close(w.granted)
			return true
		}
		for mode := range passes {
			passes[mode] = passes[mode] && l.passes(Mode(mode), w.mode)
		}
		return false
	})
}

// passes says whether one who wants the lock in a mode may have it before another who has waited for longer.
func (l *lock) passes(mode, waits Mode) bool {
	switch mode {
	case Lasting:
		return waits != Exclusive
	case Statement: // whose transaction lasts: who waits exclusively waits for that
		return waits != Sweeping && (waits != Exclusive || l.lasting > 0)
	case Sweeping:
		return waits == Lasting || waits == Exclusive && l.lasting > 0 || waits == Shared && l.lasting > 0
	}
	return false
}
