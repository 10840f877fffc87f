package main

import (
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/ebbdb/ebb"
	"github.com/ebbdb/ebb/internal/config"
)

// errDamaged is a store that is damaged, as its lines have told.
var errDamaged = errors.New("the store is damaged")

// errForeign is a store of another version, as its lines have told.
var errForeign = errors.New("the store is of another version of Ebb, with which it has to be checked")

// errLost says that not all was copied, as its lines have told.
var errLost = errors.New("the store is damaged, and not all of it could be copied")

func check() *cobra.Command {
	var path string
	cmd := &cobra.Command{
		Use:   "check",
		Short: "Look for damage in all files of a data directory, which no server uses",
		Args:  noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			c, err := ebb.Check(path, nil)
			if err != nil {
				return err
			}
			for _, line := range c.Warnings {
				fmt.Fprintln(cmd.OutOrStdout(), "warning:", line)
			}
			for _, line := range c.Foreign {
				fmt.Fprintln(cmd.OutOrStdout(), "not known:", line)
			}
			for _, line := range c.Damages {
				fmt.Fprintln(cmd.OutOrStdout(), "damage:", line)
			}
			fmt.Fprintf(cmd.OutOrStdout(), "%s: %d tables and %d logs read, %d damaged files\n", path, c.Tables, c.Logs, len(c.Damages))
			switch {
			case len(c.Foreign) > 0:
				return errForeign
			case len(c.Damages) > 0:
				return errDamaged
			}
			return nil
		},
	}
	dbpathFlag(cmd, &path)
	return cmd
}

func salvage() *cobra.Command {
	var path, out string
	cmd := &cobra.Command{
		Use:   "salvage",
		Short: "Copy what can be read of a damaged data directory, for mongorestore",
		Args:  noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			s, err := ebb.Salvage(path, out)
			if err != nil {
				return err
			}
			for _, line := range s.Lost {
				fmt.Fprintln(cmd.OutOrStdout(), "lost:", line)
			}
			if more := s.LostCount - len(s.Lost); more > 0 {
				fmt.Fprintf(cmd.OutOrStdout(), "lost: and %d more\n", more)
			}
			if len(s.LeftOut) > 0 {
				fmt.Fprintln(cmd.OutOrStdout(), "left out, being the replica set's:", strings.Join(s.LeftOut, ", "))
			}
			for _, c := range s.Copied {
				fmt.Fprintf(cmd.OutOrStdout(), "%s: %s copied\n", c.Namespace, share(c))
			}
			fmt.Fprintf(cmd.OutOrStdout(), "%s: %d documents of %d collections copied\n", out, s.Documents, s.Collections)
			if !s.IsComplete() {
				return errLost
			}
			return nil
		},
	}
	dbpathFlag(cmd, &path)
	cmd.Flags().StringVar(&out, "out", "dump", "`directory` to copy to, in the form of mongodump")
	return cmd
}

// share is how many documents were copied of how many, where that is known.
func share(c ebb.Copied) string {
	if c.Of < 0 {
		return fmt.Sprintf("%d documents", c.Documents)
	}
	return fmt.Sprintf("%d of %d documents", c.Documents, c.Of)
}

func dbpathFlag(cmd *cobra.Command, path *string) {
	cmd.Flags().StringVar(path, "dbpath", config.Default().Storage.DBPath, "`directory` of the data")
}
