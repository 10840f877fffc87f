package ebb

import (
	"fmt"
	"sync"
)

// failed is the first failure of the store.
type failed struct {
	noted chan struct{} // closed when err is set
	once  sync.Once
	err   error
}

// Err is ErrStoreFailed, with the cause, after the store has failed, and nil before.
func (s *Server) Err() error {
	select {
	case <-s.failed.noted:
		return s.failed.err
	default:
		return nil
	}
}

func (s *Server) fail(cause error) {
	s.failed.once.Do(func() {
		s.log.For("STORAGE").Error("The store can no longer keep what it promised; ending", "error", cause)
		s.failed.err = fmt.Errorf("%w: %w", ErrStoreFailed, cause)
		close(s.failed.noted)
		if s.opts.OnFailure != nil {
			s.opts.OnFailure(s.failed.err)
		}
	})
}
