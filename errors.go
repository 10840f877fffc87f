package ebb

import (
	"errors"

	"github.com/ebbdb/ebb/internal/audit"
	"github.com/ebbdb/ebb/internal/dbpath"
	"github.com/ebbdb/ebb/internal/kv"
	"github.com/ebbdb/ebb/internal/kv/inspect"
)

// Errors of a server, for errors.Is. Their texts say the rest.
var (
	// ErrInUse is Open's when another server has the data directory.
	ErrInUse = errors.New("the data directory is in use")
	// ErrDamaged is Open's when the data directory's store is damaged, or an incomplete copy. Nothing was changed. Check says
	// what is damaged, Salvage copies what can be read.
	ErrDamaged = errors.New("the store is damaged")
	// ErrStoreFailed is Serve's and Err's when the store can no longer keep what it promised: the disk has failed under its log or
	// its lists of files. What was acknowledged is on disk; no write is taken any more. Close the server, and open it anew
	// when the disk is well.
	ErrStoreFailed = errors.New("the store has failed")
	// ErrDiskHangs is Close's, and Serve's, when the server cannot end since the disk brings nothing to its end. What was acknowledged is on disk, as
	// after a power cut; the process should end, for what hangs may go on in it.
	ErrDiskHangs = errors.New("the disk hangs")
	// ErrAuditFailed is Serve's and Err's when the audit log cannot be written and is to end the server then.
	ErrAuditFailed = audit.ErrFailed
)

// namedError is an error that is one of those above, too.
type namedError struct {
	error
	name error
}

func (e *namedError) Is(target error) bool { return target == e.name }

func (e *namedError) Unwrap() error { return e.error }

func withNames(err error) error {
	var inUse *dbpath.InUseError
	var damaged *inspect.Error
	switch {
	case errors.As(err, &inUse):
		return &namedError{err, ErrInUse}
	case errors.As(err, &damaged), errors.Is(err, kv.ErrCorrupt), errors.Is(err, kv.ErrReadOnly):
		return &namedError{err, ErrDamaged}
	}
	return err
}
