package main

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/ebbdb/ebb"
	"github.com/ebbdb/ebb/internal/backup"
	"github.com/ebbdb/ebb/internal/backup/repository"
)

// restoring is what ebb restore is asked for.
type restoring struct {
	where        placeFlags
	path, backup string
	source       string
	expireAtOnce bool
	to           string
	moment       repository.Timestamp
}

func restore() *cobra.Command {
	x := &restoring{}
	cmd := &cobra.Command{
		Use:   "restore DIR|s3://BUCKET/PREFIX",
		Short: "Make a backup a data directory, in which expiry stands still at the moment of the backup",
		Args:  oneArg,
		RunE:  x.where.at(x.run),
	}
	dbpathFlag(cmd, &x.path)
	cmd.Flags().StringVar(&x.backup, "backup", "", "`name` of the backup, as 'ebb backup list' tells it; the newest without it")
	cmd.Flags().StringVar(&x.source, "source", "", "`server` whose newest backup it is, as 'ebb backup list' tells it; needed where the repository has backups of several")
	cmd.Flags().BoolVar(&x.expireAtOnce, "expireAtOnce", false, "do not hold expiry: what has expired since the backup goes with the first start")
	cmd.Flags().StringVar(&x.to, "to", "", "replay the oplog that was shipped behind the backup up to this `time` (2026-01-02T03:04:05Z), timestamp (1767323045:1), or latest")
	x.where.flags(cmd)
	return cmd
}

func (x *restoring) run(ctx context.Context, cmd *cobra.Command, r *repository.Repository) error {
	m, err := x.choose(ctx, r)
	if err != nil {
		return err
	}
	as, done := m.At, backup.Replayed{}
	how := backup.Restoring{Manifest: m, Path: x.path, Progress: told(cmd.ErrOrStderr(), "restored"), Leave: func(path string) error { return x.hold(path, m, as) }}
	if x.to != "" {
		how.Finish = func(part string) error {
			done, err = replay(ctx, part, r, m, x.moment)
			as = x.asOf(done)
			return err
		}
	}
	if err := backup.Restore(ctx, r, how); err != nil {
		return err
	}
	fmt.Fprintf(cmd.OutOrStdout(), "%s: backup %s restored, with the data as of %s: %d files, %s\n", x.path, m.ID, as.Format(time.RFC3339), len(m.Files), size(m.Bytes()))
	if x.to != "" {
		fmt.Fprintf(cmd.OutOrStdout(), "%d entries of the oplog were done again, up to %s\n", done.Entries, done.Last)
	}
	if !x.expireAtOnce {
		_, err = fmt.Fprintf(cmd.OutOrStdout(), "expiry is held at %s: nothing that expired later is hidden or deleted until setParameter ttlHold: \"release\"\n", holdAt(m, as).Format(time.RFC3339Nano))
	}
	return err
}

// choose finds the backup that is asked for, or the newest that will do.
func (x *restoring) choose(ctx context.Context, r *repository.Repository) (m *repository.Manifest, err error) {
	if x.backup != "" && x.source != "" {
		return nil, optionError{errors.New("--backup says which backup it is: --source is not needed beside it")}
	}
	if x.to != "" {
		if x.moment, err = parseMoment(x.to); err != nil {
			return nil, optionError{err}
		}
		if x.backup == "" {
			return backup.BackupFor(ctx, r, x.source, x.moment)
		}
	}
	if x.backup == "" {
		return backup.Newest(ctx, r, x.source)
	}
	return r.Manifest(ctx, x.backup)
}

// latest is the word for as late as there is anything.
const latest = "latest"

// parseMoment reads a time, a timestamp of the oplog, or the word for the latest moment, which is none.
func parseMoment(text string) (t repository.Timestamp, err error) {
	if text == latest {
		return t, nil
	}
	if at, err := time.Parse(time.RFC3339, text); err == nil {
		if at.Nanosecond() != 0 || at.Unix() <= 0 || at.Unix() > math.MaxUint32 {
			return t, fmt.Errorf("--to %s: a whole second is needed", text)
		}
		return backup.EndOf(at), nil
	}
	seconds, counter, ok := strings.Cut(text, ":")
	s, err1 := strconv.ParseUint(seconds, 10, 32)
	c, err2 := strconv.ParseUint(counter, 10, 32)
	if !ok || err1 != nil || err2 != nil || s == 0 {
		return t, fmt.Errorf("--to %q is neither a time (2026-01-02T03:04:05Z), nor a timestamp of the oplog (1767323045:1), nor %q", text, latest)
	}
	return repository.Timestamp{Seconds: uint32(s), Counter: uint32(c)}, nil
}

// asOf is as of when the data are: as was asked, or as of the last entry.
func (x *restoring) asOf(done backup.Replayed) time.Time {
	at := x.moment
	if at.IsZero() {
		at = done.Last
	}
	return time.Unix(int64(at.Seconds), 0).UTC()
}

// holdAt is where expiry stands still: where it did at the source, or at the moment as of which the data are.
func holdAt(m *repository.Manifest, as time.Time) time.Time {
	if m.HeldAt != nil && m.HeldAt.Before(as) {
		return *m.HeldAt
	}
	return as
}

func (x *restoring) hold(path string, m *repository.Manifest, as time.Time) error {
	if !x.expireAtOnce {
		return ebb.HoldDirectory(path, holdAt(m, as))
	}
	return ebb.ReleaseDirectory(path)
}
