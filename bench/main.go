// Command bench measures a server that speaks MongoDB's protocol through the official Go driver: one that runs somewhere,
// or an ebb that it starts itself. It stands outside the server, in real time, and knows nothing of how the server works.
//
//	bench [flags]                   run workloads, and append what they measured to a file of JSON lines
//	bench list                      the workloads
//	bench compare A.jsonl B.jsonl   medians of two files side by side
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	err := run(ctx, os.Args[1:], os.Stdout)
	if errors.Is(err, flag.ErrHelp) {
		return
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		stop()
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string, out io.Writer) error {
	if len(args) > 0 {
		switch args[0] {
		case "compare":
			return compareFiles(args[1:], out)
		case "list":
			return list(out)
		}
		if be := otherClientsOf(args[0]); be != nil {
			return be(ctx, os.Stdin, out)
		}
	}
	s, err := parseSettings(args, out)
	if err != nil {
		return err
	}
	return measureAll(ctx, s, out)
}

func list(out io.Writer) error {
	s, err := parseSettings(nil, out)
	if err != nil {
		return err
	}
	for _, row := range workloads(s) {
		fmt.Fprintf(out, "%-14s %s\n", row.name, row.about)
	}
	return nil
}
