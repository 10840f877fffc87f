package main

import (
	"os"

	"github.com/spf13/cobra"

	"github.com/ebbdb/ebb"
	"github.com/ebbdb/ebb/internal/javascript"
)

// scriptVerb is what the server starts this program with, once more, to have users' JavaScript run apart from it.
const scriptVerb = "javascript"

func scripts() *cobra.Command {
	return &cobra.Command{
		Use:    scriptVerb,
		Hidden: true,
		Args:   cobra.ExactArgs(1),
		RunE: func(_ *cobra.Command, args []string) error {
			return ebb.WorkScripts(os.Stdin, os.Stdout, args[0])
		},
	}
}

// scriptCommand is how this program is started for scripts. A name that does not work is said by whatever needs it.
func scriptCommand() []string {
	program, err := javascript.Executable()
	if err != nil {
		program = os.Args[0]
	}
	return []string{program, scriptVerb}
}
