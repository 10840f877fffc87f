package main

import (
	"fmt"
	"io"
	"os"

	"github.com/spf13/cobra"
	"github.com/spf13/cobra/doc"

	"github.com/ebbdb/ebb"
)

// completion prints a shell's script that completes verbs and flags.
func completion() *cobra.Command {
	writers := map[string]func(*cobra.Command, io.Writer) error{
		"bash":       func(c *cobra.Command, w io.Writer) error { return c.GenBashCompletionV2(w, true) },
		"zsh":        func(c *cobra.Command, w io.Writer) error { return c.GenZshCompletion(w) },
		"fish":       func(c *cobra.Command, w io.Writer) error { return c.GenFishCompletion(w, true) },
		"powershell": func(c *cobra.Command, w io.Writer) error { return c.GenPowerShellCompletionWithDesc(w) },
	}
	return &cobra.Command{
		Use:       "completion SHELL",
		Short:     "Print what has a shell complete the command line: bash, zsh, fish or powershell",
		Example:   "  ebb completion bash > /etc/bash_completion.d/ebb",
		ValidArgs: []string{"bash", "zsh", "fish", "powershell"},
		Args:      oneArg,
		RunE: func(cmd *cobra.Command, args []string) error {
			write := writers[args[0]]
			if write == nil {
				return badOption(cmd, fmt.Errorf("there is no completion for %q: bash, zsh, fish and powershell have one", args[0]))
			}
			return write(cmd.Root(), cmd.OutOrStdout())
		},
	}
}

// manual writes the pages of the manual, one a verb, into a folder. Packages are made with it.
func manual() *cobra.Command {
	return &cobra.Command{
		Use:    "man DIR",
		Short:  "Write the pages of the manual into a folder",
		Hidden: true,
		Args:   oneArg,
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := os.MkdirAll(args[0], 0o755); err != nil {
				return err
			}
			root := cmd.Root()
			root.DisableAutoGenTag = true // which would tell the day
			return doc.GenManTree(root, &doc.GenManHeader{Title: "EBB", Section: "1", Source: "ebb " + ebb.Version, Manual: "Ebb"}, args[0])
		},
	}
}
