// Package backup takes backups of running servers into repositories, verifies them, brings them back as data directories, and removes old
// ones. It knows servers only as a Source, and opens no store.
package backup

import (
	"context"
	"time"

	"github.com/ebbdb/ebb/internal/backup/repository"
)

// Source is a server that is backed up. It may be used by several goroutines.
type Source interface {
	// Begin has it take a checkpoint, which lasts as long as it is used or renewed.
	Begin(context.Context) (*Checkpoint, error)
	// Digest is the SHA-256 of a file, in hexadecimal. It fails where the server finds it damaged.
	Digest(ctx context.Context, checkpoint, name string) (string, error)
	// Read reads from a file, no more than the server gives at once; nothing at its end.
	Read(ctx context.Context, checkpoint, name string, offset, bytes int64) ([]byte, error)
	Renew(ctx context.Context, checkpoint string) error
	End(ctx context.Context, checkpoint string) error
	// Name is the server as an operator knows it, without secrets.
	Name() string
}

// Checkpoint is a server's store as it was at one moment.
type Checkpoint struct {
	ID string
	// At is the moment, Commit the number of the last commit before it.
	At     time.Time
	Commit int64
	// Ebb is the server's version.
	Ebb string
	// Lease is for how long it lasts when nobody uses it.
	Lease time.Duration
	// HeldAt is where expiry stood still; zero where it did not.
	HeldAt time.Time
	// Oplog is what is in it of the oplog; nil where there is none.
	Oplog *repository.Oplog
	Files []CheckpointFile
}

// CheckpointFile is one of its files.
type CheckpointFile struct {
	Name  string
	Bytes int64
}

// Progress is told how far something is.
type Progress func(Step)

// Step is how far.
type Step struct {
	// Files and Bytes are done, of TotalFiles and TotalBytes. Shipped and ShippedBytes are those of them that were not there before.
	Files, TotalFiles     int
	Bytes, TotalBytes     int64
	Shipped, ShippedFiles int64
}
