// Package handover lets a value give way to another while many work with it: whoever comes meanwhile waits for the next, and the one before
// is the giver's alone when all have left it. It knows nothing of what the values are, nor how long their users take.
package handover

import (
	"context"
	"sync"
	"sync/atomic"
)

// Users counts who works with a value. It is embedded into that.
type Users struct {
	count atomic.Int64 // ended less where nobody is let in any more
	gone  chan struct{}
	once  sync.Once
}

const ended = 1 << 40

func (u *Users) admits() bool {
	if u.count.Add(1) > 0 {
		return true
	}
	u.Leave()
	return false
}

// Leave is called by whoever has entered, when the value is not used any more.
func (u *Users) Leave() {
	if u.count.Add(-1) == -ended {
		u.once.Do(func() { close(u.gone) })
	}
}

// End lets nobody in any more. What it returns is closed when nobody is there. It is called once.
func (u *Users) End() <-chan struct{} {
	u.gone = make(chan struct{})
	u.count.Add(1) // so that gone is there for whoever leaves last
	u.count.Add(-ended)
	u.Leave()
	return u.gone
}

// Value is what embeds Users.
type Value interface {
	comparable
	admits() bool
}

// Holder has the value of the moment.
type Holder[V Value] struct {
	current atomic.Pointer[V]
	mu      sync.Mutex    // guards next
	next    chan struct{} // closed when there is another value; nil where nobody waits
}

// Current is the value of the moment, whether or not it lets anybody in; the zero value where there is none.
func (h *Holder[V]) Current() (v V) {
	if p := h.current.Load(); p != nil {
		v = *p
	}
	return v
}

// TryEnter is the value of the moment, to be left when the caller is done with it; the zero value where it lets nobody in.
func (h *Holder[V]) TryEnter() (v V) {
	if p := h.current.Load(); p != nil && (*p).admits() {
		return *p
	}
	return v
}

// Enter waits for a value; the zero value when ctx has ended before.
func (h *Holder[V]) Enter(ctx context.Context) V {
	var none V
	for {
		if v := h.TryEnter(); v != none {
			return v
		}
		h.mu.Lock()
		if v := h.TryEnter(); v != none {
			h.mu.Unlock()
			return v
		}
		if h.next == nil {
			h.next = make(chan struct{})
		}
		next := h.next
		h.mu.Unlock()
		select {
		case <-next:
		case <-ctx.Done():
			return none
		}
	}
}

// Put has a value be that of the moment, and wakes who waits for one.
func (h *Holder[V]) Put(v V) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.current.Store(&v)
	if h.next != nil {
		close(h.next)
		h.next = nil
	}
}

// Clear has no value be there.
func (h *Holder[V]) Clear() { h.current.Store(nil) }
