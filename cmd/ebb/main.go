// Command ebb is the server as a program: it reads the command line, opens the log, and leaves the rest to package ebb.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/ebbdb/ebb"
	"github.com/ebbdb/ebb/internal/config"
	"github.com/ebbdb/ebb/internal/dbpath"
)

// Exit statuses, mongod's.
const (
	exitBadOptions  = 2
	exitStoreFailed = 14
	exitNetwork     = 48
	exitDiskHangs   = 61 // of mongod's watchdog
	exitFailed      = 100
)

func main() {
	cmd, err := root().ExecuteContextC(context.Background())
	if err != nil {
		// One line, whatever was joined to the error.
		fmt.Fprintln(os.Stderr, "ebb:", strings.ReplaceAll(err.Error(), "\n", "; "))
		os.Exit(status(cmd, err))
	}
}

func root() *cobra.Command {
	cmd := &cobra.Command{
		Use:                "ebb",
		Short:              "A MongoDB-compatible document database that lets data go on time",
		SilenceErrors:      true,
		SilenceUsage:       true,
		DisableSuggestions: true,
	}
	cmd.Version = versionLine()
	cmd.SetVersionTemplate("{{.Version}}\n")
	cmd.CompletionOptions.DisableDefaultCmd = true
	cmd.SetFlagErrorFunc(badOption)
	cmd.SetHelpCommand(help())
	cmd.AddCommand(serve(), pingVerb(), check(), salvage(), user(), backupVerb(), restore(), verify(), completion(), manual(), version(), scripts())
	return cmd
}

func version() *cobra.Command {
	return &cobra.Command{
		Use:   "version",
		Short: "Print the version",
		Args:  noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			_, err := fmt.Fprintln(cmd.OutOrStdout(), versionLine())
			return err
		},
	}
}

func versionLine() string {
	return fmt.Sprintf("ebb v%s (speaks MongoDB %s)", ebb.Version, ebb.MongoVersion)
}

func noArgs(cmd *cobra.Command, args []string) error {
	if err := cobra.NoArgs(cmd, args); err != nil {
		return badOption(cmd, err)
	}
	return nil
}

// optionError is a command line that cannot be understood.
type optionError struct{ error }

func badOption(cmd *cobra.Command, err error) error {
	return optionError{fmt.Errorf("Error parsing command line: %w; try '%s --help'", err, cmd.CommandPath())}
}

// family is a command that is there for those below it: called by itself it says which there are.
func family(use, short string, members ...*cobra.Command) *cobra.Command {
	cmd := &cobra.Command{
		Use:   use,
		Short: short,
		Args:  noArgs,
		RunE:  func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(members...)
	return cmd
}

// help is cobra's, but that it fails where there is no such command.
func help() *cobra.Command {
	return &cobra.Command{
		Use:   "help [command]",
		Short: "Help about any command",
		RunE: func(cmd *cobra.Command, args []string) error {
			about, rest, err := cmd.Root().Find(args)
			if err == nil {
				err = cobra.NoArgs(about, rest)
			}
			if err != nil {
				return badOption(cmd.Root(), err)
			}
			return about.Help()
		},
	}
}

// status is the exit status for err. The root command never runs anything: its errors are commands that do not exist.
func status(cmd *cobra.Command, err error) int {
	var setting *config.Error
	var option optionError
	var inUse *dbpath.InUseError
	switch {
	case !cmd.HasParent(), errors.As(err, &setting), errors.As(err, &option):
		return exitBadOptions
	case errors.As(err, &inUse):
		return exitFailed
	case errors.Is(err, ebb.ErrStoreFailed), errors.Is(err, ebb.ErrAuditFailed):
		return exitStoreFailed
	case errors.Is(err, ebb.ErrDiskHangs):
		return exitDiskHangs
	case errors.Is(err, syscall.EADDRINUSE), errors.Is(err, syscall.EADDRNOTAVAIL):
		return exitNetwork
	}
	return exitFailed
}
