package main

import (
	"context"
	"fmt"
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
	expireAtOnce bool
}

func restore() *cobra.Command {
	x := &restoring{}
	cmd := &cobra.Command{
		Use:   "restore DIR",
		Short: "Make a backup a data directory, in which expiry stands still at the moment of the backup",
		Args:  oneArg,
		RunE: func(cmd *cobra.Command, args []string) error {
			ctx, stop := interruptible(cmd)
			defer stop()
			r, err := x.where.repository(ctx, args[0])
			if err != nil {
				return err
			}
			return x.run(ctx, cmd, r)
		},
	}
	dbpathFlag(cmd, &x.path)
	cmd.Flags().StringVar(&x.backup, "backup", "", "`name` of the backup, as 'ebb backup list' tells it; the newest without it")
	cmd.Flags().BoolVar(&x.expireAtOnce, "expireAtOnce", false, "do not hold expiry: what has expired since the backup goes with the first start")
	x.where.flags(cmd)
	return cmd
}

func (x *restoring) run(ctx context.Context, cmd *cobra.Command, r *repository.Repository) (err error) {
	if x.backup == "" {
		if x.backup, err = backup.Latest(ctx, r); err != nil {
			return err
		}
	}
	m, err := r.Manifest(ctx, x.backup)
	if err != nil {
		return err
	}
	err = backup.Restore(ctx, r, backup.Restoring{Manifest: m, Path: x.path, Progress: told(cmd.ErrOrStderr(), "restored"),
		Leave: func(path string) error { return x.hold(path, m) }})
	if err != nil {
		return err
	}
	fmt.Fprintf(cmd.OutOrStdout(), "%s: backup %s restored, with the data as of %s: %d files, %s\n", x.path, m.ID, m.At.Format(time.RFC3339), len(m.Files), size(m.Bytes()))
	if !x.expireAtOnce {
		_, err = fmt.Fprintf(cmd.OutOrStdout(), "expiry is held at %s: nothing that expired later is hidden or deleted until setParameter ttlHold: \"release\"\n", holdAt(m).Format(time.RFC3339Nano))
	}
	return err
}

// holdAt is where expiry stands still: where it did at the source, or at the moment of the backup.
func holdAt(m *repository.Manifest) time.Time {
	if m.HeldAt != nil && m.HeldAt.Before(m.At) {
		return *m.HeldAt
	}
	return m.At
}

func (x *restoring) hold(path string, m *repository.Manifest) error {
	if !x.expireAtOnce {
		return ebb.HoldDirectory(path, holdAt(m))
	}
	return ebb.ReleaseDirectory(path)
}
