package ebb

import (
	"errors"
	"fmt"
	"sync"
)

// ErrStoreFailed is the error of a server whose store can no longer keep what it promised: the disk has failed under its log or
// its lists of files. What was acknowledged is on disk; no write is taken any more. Close the server, and open it anew when
// the disk is well.
var ErrStoreFailed = errors.New("the store has failed")

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
		s.opts.Log.For("STORAGE").Error("The store can no longer keep what it promised; ending", "error", cause)
		s.failed.err = fmt.Errorf("%w: %w", ErrStoreFailed, cause)
		close(s.failed.noted)
		if s.opts.OnFailure != nil {
			s.opts.OnFailure(s.failed.err)
		}
	})
}
