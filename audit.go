package ebb

import (
	"context"

	"github.com/ebbdb/ebb/internal/audit"
)

// Audit is which events are written to the audit log, and where.
type Audit = audit.Options

// openAudit opens the audit log; nil where none is asked for.
func (s *Server) openAudit() (*audit.Log, error) {
	if s.opts.Audit == nil {
		return nil, nil
	}
	return audit.Open(*s.opts.Audit, s.log.For("ACCESS"))
}

// RotateAuditLog begins a new file of the audit log, if there is one.
func (s *Server) RotateAuditLog() error {
	d := s.serving.Enter(context.Background())
	defer d.Leave()
	return d.commands.RotateAudit()
}
