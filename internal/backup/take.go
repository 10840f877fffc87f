package backup

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"sync/atomic"
	"time"

	"github.com/ebbdb/ebb/internal/backup/repository"
	"github.com/ebbdb/ebb/internal/clock"
)

// readStep is how much of a file is asked of the server at once.
const readStep = 2 << 20

// Taken is what Take has done.
type Taken struct {
	Manifest *repository.Manifest
	Step
}

// Take backs a server up. What the repository has already is not shipped again.
func Take(ctx context.Context, s Source, r *repository.Repository, c clock.Clock, p Progress) (t *Taken, err error) {
	lock, err := r.Lock(ctx, repository.Adding, "ebb backup of "+s.Name())
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, lock.Release(context.WithoutCancel(ctx))) }()
	known, err := r.Contents(ctx)
	if err != nil {
		return nil, err
	}
	point, err := s.Begin(ctx)
	if err != nil {
		return nil, fmt.Errorf("begin the backup: %w", err)
	}
	x := &taking{source: s, repository: r, clock: c, lock: lock, point: point, known: known, progress: p}
	m, err := x.run(ctx)
	err = errors.Join(err, s.End(context.WithoutCancel(ctx), point.ID))
	if err != nil {
		return nil, err
	}
	return &Taken{m, x.step()}, nil
}

// taking is a backup under way.
type taking struct {
	source     Source
	repository *repository.Repository
	clock      clock.Clock
	lock       *repository.Lock
	point      *Checkpoint
	known      map[string]int64
	progress   Progress
	total      int64

	files, bytes, shipped, shippedFiles atomic.Int64
}

func (x *taking) step() Step {
	return Step{Files: int(x.files.Load()), TotalFiles: len(x.point.Files), Bytes: x.bytes.Load(), TotalBytes: x.total,
		Shipped: x.shipped.Load(), ShippedFiles: x.shippedFiles.Load()}
}

func (x *taking) run(ctx context.Context) (*repository.Manifest, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var beside sync.WaitGroup
	beside.Go(func() {
		if err := x.renew(ctx); err != nil {
			cancel(err)
		}
	})
	m, err := x.ship(ctx)
	if err == nil {
		err = x.check(ctx, m)
	}
	if err == nil {
		err = x.lock.Renew(ctx, "ebb backup of "+x.source.Name()) // who has broken it may have removed content since
	}
	if err != nil && ctx.Err() != nil {
		err = context.Cause(ctx)
	}
	cancel(nil)
	beside.Wait()
	if err != nil {
		return nil, err
	}
	return m, x.repository.Add(context.WithoutCancel(ctx), m)
}

// renew keeps the checkpoint and the lock until ctx ends.
func (x *taking) renew(ctx context.Context) error {
	every := min(x.point.Lease/4, repository.LockRenewal)
	for clock.Wait(ctx, x.clock, max(every, time.Second)) == nil {
		if err := x.source.Renew(ctx, x.point.ID); err != nil && ctx.Err() == nil {
			return fmt.Errorf("the server has given up the checkpoint: %w", err)
		}
		if err := x.lock.Renew(ctx, "ebb backup of "+x.source.Name()); err != nil && ctx.Err() == nil {
			return fmt.Errorf("the lock in the repository cannot be renewed: %w", err)
		}
	}
	return nil
}

// ship ships all files, several at once.
func (x *taking) ship(ctx context.Context) (*repository.Manifest, error) {
	m := &repository.Manifest{ID: repository.NewID(x.point.At), At: x.point.At.UTC(), Commit: x.point.Commit, Ebb: x.point.Ebb, Source: x.source.Name(),
		Oplog: x.point.Oplog, Files: make([]repository.File, len(x.point.Files))}
	if at := x.point.HeldAt; !at.IsZero() {
		at = at.UTC()
		m.HeldAt = &at
	}
	for _, f := range x.point.Files {
		x.total += f.Bytes
	}
	return m, each(ctx, len(m.Files), func(ctx context.Context, i int) error {
		f, err := x.shipOne(ctx, x.point.Files[i])
		if err != nil {
			return fmt.Errorf("ship %s: %w", x.point.Files[i].Name, err)
		}
		m.Files[i] = f
		if x.progress != nil {
			x.progress(x.step())
		}
		return nil
	})
}

func (x *taking) shipOne(ctx context.Context, c CheckpointFile) (f repository.File, err error) {
	sum, err := x.source.Digest(ctx, x.point.ID, c.Name)
	if err != nil {
		return f, err
	}
	f = repository.File{Name: c.Name, Bytes: c.Bytes, SHA256: sum}
	if bytes, ok := x.known[sum]; !ok || bytes != c.Bytes {
		if err := x.put(ctx, f, c); err != nil {
			return f, err
		}
	}
	x.files.Add(1)
	x.bytes.Add(c.Bytes)
	return f, nil
}

func (x *taking) put(ctx context.Context, f repository.File, c CheckpointFile) error {
	if err := x.repository.Put(ctx, f, &remoteFile{ctx: ctx, x: x, file: c}); err != nil {
		return err
	}
	x.shipped.Add(c.Bytes)
	x.shippedFiles.Add(1)
	return nil
}

// check looks whether all content is there before a manifest says so. What was there, and is gone or has another size, is shipped again: the
// server has it.
func (x *taking) check(ctx context.Context, m *repository.Manifest) error {
	for i, f := range m.Files {
		ok, err := x.repository.Has(ctx, f)
		if err == nil && !ok {
			err = x.put(ctx, f, x.point.Files[i])
		}
		if err != nil {
			return fmt.Errorf("look for the content of %s: %w", f.Name, err)
		}
	}
	return nil
}

// remoteFile reads a file of the checkpoint.
type remoteFile struct {
	ctx  context.Context
	x    *taking
	file CheckpointFile
	at   int64
	rest []byte
}

func (f *remoteFile) Read(p []byte) (int, error) {
	if len(f.rest) == 0 {
		if f.at >= f.file.Bytes {
			return 0, io.EOF
		}
		b, err := f.x.source.Read(f.ctx, f.x.point.ID, f.file.Name, f.at, min(readStep, f.file.Bytes-f.at))
		if err != nil {
			return 0, err
		}
		if len(b) == 0 {
			return 0, io.ErrUnexpectedEOF
		}
		f.rest = b
	}
	n := copy(p, f.rest)
	f.rest, f.at = f.rest[n:], f.at+int64(n)
	return n, nil
}
