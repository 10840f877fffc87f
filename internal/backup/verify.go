package backup

import (
	"context"
	"fmt"
	"io"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/ebbdb/ebb/internal/backup/place"
	"github.com/ebbdb/ebb/internal/backup/repository"
)

// Verified is what Verify has found.
type Verified struct {
	// Sound are the backups of which everything is there as it was shipped.
	Sound []string
	// Faults are lines that each say what is wrong, and with which backups; no more than maxFaults of FaultCount.
	Faults     []string
	FaultCount int
	// Unread are lines that each say what could not be read, of which nobody knows whether it is sound.
	Unread []string
	// Segments of oplogs are how many were read and are sound.
	Segments int
	Step
}

const (
	// maxFaults bounds how many lines are kept.
	maxFaults = 1000
	// maxUnread is how much is left unread before a place counts as one that cannot be reached.
	maxUnread = 16
)

// failed notes why something was not read, or is not what it was. It fails where too much was not read.
func (v *Verified) failed(err error) error {
	switch {
	case err == nil:
		return nil
	case place.IsFault(err):
		v.fault("%v", err)
		return nil
	}
	if v.Unread = append(v.Unread, err.Error()); len(v.Unread) < maxUnread {
		return nil
	}
	return fmt.Errorf("given up, for %d things could not be read; the last: %w", len(v.Unread), err)
}

func (v *Verified) fault(format string, args ...any) {
	if v.FaultCount++; len(v.Faults) < maxFaults {
		v.Faults = append(v.Faults, fmt.Sprintf(format, args...))
	}
}

// Verify reads all that backups consist of, of those named or of all, and compares it with its digests. It may fail with what it has found so far.
func Verify(ctx context.Context, r *repository.Repository, ids []string, p Progress) (*Verified, error) {
	v := &Verified{}
	if len(ids) == 0 {
		if err := v.orphans(ctx, r); err != nil {
			return nil, err
		}
		var err error
		if ids, err = r.IDs(ctx); err != nil {
			return nil, err
		}
	}
	begins := map[string]repository.Timestamp{} // where the chains of backups do
	backups := map[string][]string{}            // by the digest of what they need
	var contents []repository.File
	for _, id := range ids {
		m, err := r.Manifest(ctx, id)
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		if err != nil {
			if err := v.failed(err); err != nil {
				return v, err
			}
			continue
		}
		v.Sound = append(v.Sound, id)
		if m.Oplog != nil {
			begins[id] = m.Oplog.From
		}
		for _, f := range m.Files {
			if backups[f.SHA256] == nil {
				contents = append(contents, f)
				v.TotalBytes += f.Bytes
			}
			if of := backups[f.SHA256]; len(of) == 0 || of[len(of)-1] != id {
				backups[f.SHA256] = append(of, id)
			}
		}
	}
	v.TotalFiles = len(contents)
	if err := v.read(ctx, r, contents, backups, p); err != nil {
		return v, err
	}
	for _, id := range ids {
		if err := v.chain(ctx, r, id, begins[id]); err != nil {
			return v, err
		}
	}
	return v, nil
}

// orphans looks for chains whose backups are gone: nobody can replay them. Backups are asked for after chains, which come later.
func (v *Verified) orphans(ctx context.Context, r *repository.Repository) error {
	chains, err := r.Chains(ctx)
	if err != nil {
		return err
	}
	for _, id := range chains {
		switch there, err := r.HasBackup(ctx, id); {
		case err != nil:
			return err
		case !there:
			v.fault("the oplog behind backup %s is there, and not the backup: nothing of it can be replayed; 'ebb backup prune' removes it", id)
		}
	}
	return nil
}

// chain reads the segments behind a backup, which begin behind an entry that it surely has; zero where that is not known. What is wrong
// with them does not make the backup unsound.
func (v *Verified) chain(ctx context.Context, r *repository.Repository, id string, last repository.Timestamp) error {
	covered, err := r.Covered(ctx, id) // before the segments: a follower may ship more meanwhile
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if err := v.failed(err); err != nil {
		return err
	}
	all, err := r.Segments(ctx, id)
	if err != nil {
		return err
	}
	for _, n := range all {
		s, err := r.ReadSegment(ctx, n, func([]byte) error { return context.Cause(ctx) })
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if err != nil {
			if err := v.failed(err); err != nil {
				return err
			}
			if !place.IsFault(err) && n.Last.Compare(last) > 0 { // it is there
				last = n.Last
			}
			continue
		}
		if !last.IsZero() && s.Prev.Compare(last) > 0 {
			v.fault("the oplog behind backup %s has a gap: what came behind entry %s and up to %s is missing", id, last, s.Prev)
		}
		if s.Last.Compare(last) > 0 { // where two have followed, segments overlap
			last = s.Last
		}
		v.Segments++
	}
	if !last.IsZero() && covered.After.Compare(last) > 0 {
		v.fault("the end of the oplog behind backup %s is missing: what came behind entry %s and up to %s", id, last, covered.After)
	}
	return nil
}

func (v *Verified) read(ctx context.Context, r *repository.Repository, contents []repository.File, backups map[string][]string, p Progress) error {
	var files, bytes atomic.Int64
	var mu sync.Mutex
	err := each(ctx, len(contents), func(ctx context.Context, i int) error {
		f := contents[i]
		err := read(ctx, r, f)
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		mu.Lock()
		defer mu.Unlock()
		if err != nil {
			bad := backups[f.SHA256]
			v.Sound = slices.DeleteFunc(v.Sound, func(id string) bool { return slices.Contains(bad, id) })
			if err := v.failed(fmt.Errorf("%w; it is of %d backups, the newest is %s", err, len(bad), bad[len(bad)-1])); err != nil {
				return err
			}
		}
		step := Step{Files: int(files.Add(1)), TotalFiles: v.TotalFiles, Bytes: bytes.Add(f.Bytes), TotalBytes: v.TotalBytes}
		if p != nil {
			p(step)
		}
		return nil
	})
	v.Files, v.Bytes = int(files.Load()), bytes.Load()
	return err
}

func read(ctx context.Context, r *repository.Repository, f repository.File) error {
	content, err := r.Get(ctx, f)
	if err != nil {
		return err
	}
	defer content.Close()
	_, err = io.Copy(io.Discard, content)
	return err
}
