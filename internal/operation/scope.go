package operation

import (
	"context"
	"sync/atomic"
	"time"
)

// scope is the context that an operation runs in: it ends with its parent, when the operation is killed, and when it is
// over. Most operations end before anybody waits for their end, so what can be waited for is made for those who do.
type scope struct {
	parent context.Context
	over   atomic.Bool
	made   atomic.Pointer[waitable]
}

// waitable is the context that all but Err and Deadline come from once there is one.
type waitable struct {
	context.Context
	cancel context.CancelCauseFunc
}

// waitable makes the scope's, unless it is there.
func (s *scope) waitable() *waitable {
	if w := s.made.Load(); w != nil {
		return w
	}
	w := &waitable{}
	w.Context, w.cancel = context.WithCancelCause(s.parent)
	if !s.made.CompareAndSwap(nil, w) {
		w.cancel(nil)
		return s.made.Load()
	}
	if s.over.Load() { // end may have been too early to see it
		w.cancel(nil)
	}
	return w
}

// kill ends the scope for the reason cause.
func (s *scope) kill(cause error) { s.waitable().cancel(cause) }

// end ends the scope because its operation is over.
func (s *scope) end() {
	s.over.Store(true)
	if w := s.made.Load(); w != nil {
		w.cancel(nil)
	}
}

// Deadline is context.Context's.
func (s *scope) Deadline() (time.Time, bool) { return s.parent.Deadline() }

// Done is context.Context's.
func (s *scope) Done() <-chan struct{} { return s.waitable().Done() }

// Err is context.Context's.
func (s *scope) Err() error {
	if w := s.made.Load(); w != nil {
		return w.Err()
	}
	if s.over.Load() {
		return context.Canceled
	}
	return s.parent.Err()
}

// Value is context.Context's. It is how context.Cause finds the cause.
func (s *scope) Value(key any) any { return s.waitable().Value(key) }
