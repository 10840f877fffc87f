package pebblekv

import (
	"fmt"
	"log/slog"
	"sync/atomic"
)

// failure remembers the first error after which the store cannot keep its promises.
type failure struct {
	log  *slog.Logger
	hook func(error)
	err  atomic.Pointer[error]
}

func (f *failure) set(err error) {
	if !f.err.CompareAndSwap(nil, &err) {
		return
	}
	f.log.Error("store: failed; no more writes are taken", "err", err)
	if f.hook != nil {
		go f.hook(err) // not here: the caller may hold locks of Pebble's
	}
}

// get is nil while all is well.
func (f *failure) get() error {
	if err := f.err.Load(); err != nil {
		return fmt.Errorf("%w: %w", errFailed, *err)
	}
	return nil
}
