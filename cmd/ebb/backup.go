package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"sync"
	"syscall"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/ebbdb/ebb/internal/backup"
	"github.com/ebbdb/ebb/internal/backup/place"
	"github.com/ebbdb/ebb/internal/backup/repository"
	"github.com/ebbdb/ebb/internal/clock"
)

// errFaults is a repository in which something is wrong, as its lines have told.
var errFaults = errors.New("backups are damaged")

// errUnread is a repository of which something was not read, as its lines have told.
var errUnread = errors.New("not all could be read, and whether that is sound is not known")

func backupVerb() *cobra.Command {
	var uri string
	var follows bool
	var where placeFlags
	cmd := &cobra.Command{
		Use:   "backup DIR|s3://BUCKET/PREFIX",
		Short: "Back up a running server into a repository; what is there already is not shipped again",
		Args:  oneArg,
		RunE: func(cmd *cobra.Command, args []string) error {
			ctx, stop := interruptible(cmd)
			defer stop()
			p, err := where.open(ctx, args[0], true)
			if err != nil {
				return err
			}
			r, err := repository.Create(ctx, p, clock.Wall())
			if err != nil {
				return err
			}
			s, err := dial(ctx, uri)
			if err != nil {
				return err
			}
			defer s.close()
			if follows {
				return follow(ctx, cmd.OutOrStdout(), cmd.ErrOrStderr(), s, r)
			}
			taken, err := backup.Take(ctx, s, r, clock.Wall(), told(cmd.ErrOrStderr(), "shipped"))
			if err != nil {
				return err
			}
			tellTaken(cmd.OutOrStdout(), r, taken)
			return nil
		},
	}
	cmd.Flags().StringVar(&uri, "uri", "mongodb://127.0.0.1:27017", "`address` of the running server")
	cmd.Flags().BoolVar(&follows, "follow", false, "ship the oplog as it is written, until interrupted, behind the last backup or a new one")
	where.flags(cmd)
	cmd.AddCommand(backupList(), backupPrune())
	return cmd
}

func tellTaken(w io.Writer, r *repository.Repository, t *backup.Taken) {
	m := t.Manifest
	fmt.Fprintf(w, "%s: backup %s of the data as of %s: %d files, %s, of which %d files, %s, were shipped\n",
		r, m.ID, m.At.Format(time.RFC3339), len(m.Files), size(m.Bytes()), t.ShippedFiles, size(t.Shipped))
}

// interruptible ends with the signals that ask for it, so that what is under way can be undone.
func interruptible(cmd *cobra.Command) (context.Context, context.CancelFunc) {
	return signal.NotifyContext(cmd.Context(), syscall.SIGINT, syscall.SIGTERM)
}

func backupList() *cobra.Command {
	var where placeFlags
	cmd := &cobra.Command{
		Use:   "list DIR|s3://BUCKET/PREFIX",
		Short: "List the backups of a repository",
		Args:  oneArg,
		RunE: where.at(func(ctx context.Context, cmd *cobra.Command, r *repository.Repository) error {
			ids, err := r.IDs(ctx)
			if err != nil {
				return err
			}
			w := tabwriter.NewWriter(cmd.OutOrStdout(), 0, 8, 2, ' ', 0)
			fmt.Fprintln(w, "BACKUP\tDATA AS OF\tFILES\tSIZE\tSOURCE")
			faulty := false
			for _, id := range ids {
				m, err := r.Manifest(ctx, id)
				if err != nil && !place.IsFault(err) {
					return errors.Join(err, w.Flush())
				}
				if err != nil {
					faulty = true
					fmt.Fprintf(w, "%s\t%v\n", id, err)
					continue
				}
				fmt.Fprintf(w, "%s\t%s\t%d\t%s\t%s\n", m.ID, m.At.Format(time.RFC3339), len(m.Files), size(m.Bytes()), m.Source)
			}
			if err := w.Flush(); err != nil || !faulty {
				return err
			}
			return errFaults
		}),
	}
	where.flags(cmd)
	return cmd
}

func backupPrune() *cobra.Command {
	var where placeFlags
	var keep backup.Keep
	cmd := &cobra.Command{
		Use:   "prune DIR|s3://BUCKET/PREFIX",
		Short: "Remove old backups of a repository, and the content that no other needs",
		Args:  oneArg,
		RunE: where.at(func(ctx context.Context, cmd *cobra.Command, r *repository.Repository) error {
			keep.Now = clock.Wall().Now()
			p, err := backup.Prune(ctx, r, keep)
			if err != nil {
				return err
			}
			for _, id := range p.Forgotten {
				fmt.Fprintln(cmd.OutOrStdout(), "removed:", id)
			}
			_, err = fmt.Fprintf(cmd.OutOrStdout(), "%s: %d backups removed, %d kept; %d files, %s, given back\n", r, len(p.Forgotten), p.Kept, p.Objects, size(p.Bytes))
			return err
		}),
	}
	cmd.Flags().IntVar(&keep.Last, "keep", 7, "how `many` of the newest backups of each server to keep")
	cmd.Flags().DurationVar(&keep.Within, "keepWithin", 0, "keep those that are younger, too, as 720h; a `duration`")
	cmd.Flags().BoolVar(&keep.BreakLocks, "breakLocks", false, "go on although somebody seems to be at work in the repository, who is gone: a backup under way there fails")
	where.flags(cmd)
	return cmd
}

func verify() *cobra.Command {
	var where placeFlags
	var ids []string
	cmd := &cobra.Command{
		Use:   "verify DIR|s3://BUCKET/PREFIX",
		Short: "Read all that backups consist of, and compare it with its checksums",
		Args:  oneArg,
		RunE: where.at(func(ctx context.Context, cmd *cobra.Command, r *repository.Repository) error {
			v, err := backup.Verify(ctx, r, ids, told(cmd.ErrOrStderr(), "read"))
			if v != nil {
				tellFaults(cmd.OutOrStdout(), v)
			}
			if err != nil {
				return err
			}
			fmt.Fprintf(cmd.OutOrStdout(), "%s: %d files, %s, and %d segments of oplogs read; %d backups are sound, %d faults\n", r, v.Files, size(v.Bytes), v.Segments, len(v.Sound), v.FaultCount)
			switch {
			case v.FaultCount > 0:
				return errFaults
			case len(v.Unread) > 0:
				return errUnread
			}
			return nil
		}),
	}
	cmd.Flags().StringArrayVar(&ids, "backup", nil, "`name` of a backup; may be given several times; without it all are verified")
	where.flags(cmd)
	return cmd
}

func tellFaults(w io.Writer, v *backup.Verified) {
	for _, line := range v.Faults {
		fmt.Fprintln(w, "fault:", line)
	}
	if more := v.FaultCount - len(v.Faults); more > 0 {
		fmt.Fprintf(w, "fault: and %d more\n", more)
	}
	for _, line := range v.Unread {
		fmt.Fprintln(w, "not read:", line)
	}
}

// placeFlags say how a place is reached.
type placeFlags struct{ access place.Access }

func (f *placeFlags) flags(cmd *cobra.Command) {
	cmd.Flags().StringVar(&f.access.Endpoint, "s3Endpoint", os.Getenv("AWS_ENDPOINT_URL"), "`URL` of an object store that speaks S3, for s3://; Amazon's without it")
	cmd.Flags().StringVar(&f.access.Region, "s3Region", os.Getenv("AWS_REGION"), "`region` of the bucket")
	cmd.Flags().BoolVar(&f.access.PathStyle, "s3PathStyle", false, "have the bucket's name in the path, and not in the name of the host")
	cmd.Flags().BoolVar(&f.access.HostStyle, "s3HostStyle", false, "have the bucket's name in the name of the host, and not in the path")
	cmd.MarkFlagsMutuallyExclusive("s3PathStyle", "s3HostStyle")
}

func (f *placeFlags) open(ctx context.Context, name string, create bool) (place.Place, error) {
	if place.IsBucket(name) {
		return place.OpenBucket(ctx, name, f.access)
	}
	return place.OpenFolder(name, create)
}

// repository opens one that is there.
func (f *placeFlags) repository(ctx context.Context, name string) (*repository.Repository, error) {
	p, err := f.open(ctx, name, false)
	if err != nil {
		return nil, err
	}
	return repository.Open(ctx, p, clock.Wall())
}

// at has a command work at the repository that its argument names, until it is interrupted.
func (f *placeFlags) at(work func(context.Context, *cobra.Command, *repository.Repository) error) func(*cobra.Command, []string) error {
	return func(cmd *cobra.Command, args []string) error {
		ctx, stop := interruptible(cmd)
		defer stop()
		r, err := f.repository(ctx, args[0])
		if err != nil {
			return err
		}
		return work(ctx, cmd, r)
	}
}

// tellEvery is how often it is told how far something is.
const tellEvery = 2 * time.Second

// told tells how far something is, now and then.
func told(w io.Writer, done string) backup.Progress {
	var mu sync.Mutex
	last := clock.Wall().Now()
	return func(s backup.Step) {
		mu.Lock()
		defer mu.Unlock()
		now := clock.Wall().Now()
		if now.Sub(last) < tellEvery {
			return
		}
		last = now
		fmt.Fprintf(w, "%d of %d files, %s of %s %s\n", s.Files, s.TotalFiles, size(s.Bytes), size(s.TotalBytes), done)
	}
}

// size is a number of bytes as people read it.
func size(n int64) string {
	const unit = 1024
	if n < unit {
		return fmt.Sprintf("%d B", n)
	}
	value, i := float64(n)/unit, 0
	for ; value >= unit && i < len(units)-1; i++ {
		value /= unit
	}
	return fmt.Sprintf("%.1f %ciB", value, units[i])
}

const units = "KMGTPE"
