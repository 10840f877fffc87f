package ebb

import (
	"fmt"
	"sync"
)

// failed is the first failure that ends the server: of the store, or of the audit log.
type failed struct {
	noted chan struct{} // closed when err is set
	once  sync.Once
	err   error
}

// Err is ErrStoreFailed or ErrAuditFailed, with the cause, after one of them has failed, and nil before.
func (s *Server) Err() error {
	select {
	case <-s.failed.noted:
		return s.failed.err
	default:
		return nil
	}
}

func (s *Server) fail(cause error) {
	s.failFor("STORAGE", "The store can no longer keep what it promised; ending", fmt.Errorf("%w: %w", ErrStoreFailed, cause), cause)
}

// failAudit ends the server since the audit log cannot be written.
func (s *Server) failAudit(cause error) {
	s.failFor("ACCESS", "The audit log cannot be written; ending", cause, cause)
}

func (s *Server) failFor(component, text string, err, cause error) {
	s.failed.once.Do(func() {
		s.log.For(component).Error(text, "error", cause)
		s.failed.err = err
		close(s.failed.noted)
		if s.opts.OnFailure != nil {
			go s.opts.OnFailure(s.failed.err) // who wrote the audit log is an operation, for which it may wait
		}
	})
}
