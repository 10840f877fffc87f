package backup

import (
	"context"
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/ebbdb/ebb/internal/backup/repository"
)

// errReached ends a replay at the moment that was asked for.
var errReached = errors.New("the moment is reached")

// EndOf is the last timestamp of a second.
func EndOf(t time.Time) repository.Timestamp {
	return repository.Timestamp{Seconds: uint32(t.Unix()), Counter: math.MaxUint32}
}

// BackupFor is the newest backup of a server, as Newest has it, from which the oplog leads to a moment, or that was taken at it. The zero moment is as late as there is
// anything: behind the newest chain, or in a backup that is newer than its end.
func BackupFor(ctx context.Context, r *repository.Repository, source string, to repository.Timestamp) (*repository.Manifest, error) {
	all, err := backupsOf(ctx, r, source)
	if err != nil {
		return nil, err
	}
	why := fmt.Errorf("no backup in %s has an oplog behind it", r)
	var latest *repository.Manifest
	var end repository.Timestamp
	for _, m := range all {
		if m.Oplog == nil {
			continue
		}
		if !to.IsZero() && m.Oplog.To.Compare(to) > 0 {
			why = fmt.Errorf("backup %s is younger than %s, and there is none that is older", m.ID, to)
			continue
		}
		if m.Oplog.From == to {
			return r.Manifest(ctx, m.ID)
		}
		last, chained, err := endOf(ctx, r, m)
		if err != nil {
			return nil, err
		}
		if chained && !to.IsZero() {
			return r.Manifest(ctx, m.ID)
		}
		if last.Compare(end) > 0 && (to.IsZero() || m.Oplog.To == to) { // which may lack that entry: an older one with a chain goes before it
			latest, end = m, last
		}
		if chained {
			break
		}
	}
	if latest == nil {
		return nil, why
	}
	return r.Manifest(ctx, latest.ID)
}

// endOf is the last entry that a backup has, or that is behind it, and whether the oplog was followed behind it.
func endOf(ctx context.Context, r *repository.Repository, m *repository.Manifest) (last repository.Timestamp, chained bool, err error) {
	all, err := r.Segments(ctx, m.ID)
	if err != nil {
		return last, false, err
	}
	last = m.Oplog.To
	for _, n := range all {
		if n.Last.Compare(last) > 0 {
			last = n.Last
		}
	}
	c, err := r.Covered(ctx, m.ID)
	return last, len(all) > 0 || err == nil && !c.Until.IsZero(), nil
}

// Replayed is what Replay has given.
type Replayed struct {
	Entries int
	// Last is the last entry, or the one that it began behind.
	Last repository.Timestamp
}

// Replay gives the entries of the oplog that were shipped behind a backup, from the one behind an entry on, up to a moment; the zero moment is as
// late as there is anything. It fails where one is missing in between, and where nobody knows whether there are more before the moment.
func Replay(ctx context.Context, r *repository.Repository, backup string, behind, to repository.Timestamp, at func(entry []byte) (repository.Timestamp, error), each func(Entry) error) (done Replayed, err error) {
	if !to.IsZero() && behind.Compare(to) > 0 {
		return done, fmt.Errorf("backup %s has entry %s already, which is behind %s: an older backup is needed", backup, behind, to)
	}
	done.Last = behind
	covered, damaged := r.Covered(ctx, backup) // before the segments: a follower may ship more meanwhile
	all, err := r.Segments(ctx, backup)
	if err != nil {
		return done, err
	}
	for _, n := range all {
		if n.Last.Compare(done.Last) <= 0 {
			continue
		}
		head, err := r.ReadSegment(ctx, n, nil)
		if err != nil {
			return done, err
		}
		if head.Prev.Compare(done.Last) > 0 {
			return done, fmt.Errorf("the oplog behind backup %s has a gap: what came behind entry %s and up to %s is missing, so nothing behind it can be replayed", backup, done.Last, head.Prev)
		}
		before := repository.Timestamp{}
		_, err = r.ReadSegment(ctx, n, func(doc []byte) error {
			t, err := at(doc)
			if err != nil {
				return err
			}
			if t.Compare(before) <= 0 || t.Compare(head.First) < 0 || t.Compare(head.Last) > 0 {
				return fmt.Errorf("entry %s is out of order", t)
			}
			before = t
			switch {
			case t.Compare(done.Last) <= 0:
				return nil
			case !to.IsZero() && t.Compare(to) > 0:
				return errReached
			}
			if err := each(Entry{t, doc}); err != nil {
				return err
			}
			done.Entries, done.Last = done.Entries+1, t
			return nil
		})
		if errors.Is(err, errReached) {
			return done, nil
		}
		if err != nil {
			return done, err
		}
	}
	if !to.IsZero() && done.Last.Compare(to) >= 0 {
		return done, nil
	}
	if damaged != nil {
		return done, fmt.Errorf("nobody knows whether the oplog behind backup %s goes on behind entry %s, up to which it can be replayed: %w", backup, done.Last, damaged)
	}
	return done, reaches(backup, covered, done.Last, to)
}

// reaches looks whether it is known that no entry is missing between the last and a moment.
func reaches(backup string, covered repository.Coverage, last, to repository.Timestamp) error {
	if covered.After.Compare(last) > 0 {
		return fmt.Errorf("the end of the oplog behind backup %s is missing: what came behind entry %s and up to %s; it can be replayed to %s", backup, last, covered.After, last)
	}
	if to.IsZero() {
		return nil
	}
	until := last
	if covered.After == last && covered.Until.Compare(last) > 0 {
		until = covered.Until
	}
	if until.Compare(to) >= 0 {
		return nil
	}
	return fmt.Errorf("the oplog behind backup %s was shipped up to %s (%s) only, and not to %s", backup, time.Unix(int64(until.Seconds), 0).UTC().Format(time.RFC3339), until, to)
}
