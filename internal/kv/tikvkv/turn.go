package tikvkv

import "context"

// turn is a mutex that may be waited for no longer than a context lasts.
type turn struct{ taken chan struct{} }

func newTurn() turn { return turn{make(chan struct{}, 1)} }

func (t turn) Lock() { t.taken <- struct{}{} }

func (t turn) Unlock() { <-t.taken }

// TryLock says whether it was free.
func (t turn) TryLock() bool {
	select {
	case t.taken <- struct{}{}:
		return true
	default:
		return false
	}
}

// LockWithin is Lock, or an error where ctx ends before.
func (t turn) LockWithin(ctx context.Context) error {
	select {
	case t.taken <- struct{}{}:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
