// Command up runs a TiKV cluster in the foreground, for anybody who wants to try Ebb on one (make tikv-up). It writes one line when the cluster is
// ready, "pd HOST:PORT" (several with commas between), and leaves nothing behind when it ends: by SIGINT, SIGTERM or SIGHUP, or because the process that started it is gone. With
// a command behind the flags it runs that, with EBB_TIKV_PD set, and ends with it.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"syscall"
	"time"

	"github.com/ebbdb/ebb/e2e/tikv/cluster"
)

const (
	parentPause  = time.Second      // between two looks at who started this
	commandLimit = 10 * time.Second // from the interrupt of the command on, until it is killed
)

func main() {
	stores := flag.Int("stores", 1, "how many stores; with three or more each region has three replicas")
	pds := flag.Int("pds", 1, "how many placement drivers, an odd number")
	flag.Parse()
	ctx, cancel := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	defer cancel()
	go awaitOrphaned(os.Getppid(), cancel)
	if err := run(ctx, cluster.Options{Stores: *stores, PDs: *pds, Log: os.Stderr}, flag.Args()); err != nil {
		fmt.Fprintln(os.Stderr, "tikv-up:", err)
		os.Exit(1)
	}
}

// awaitOrphaned calls end when the process that started this one has ended: make that was killed passes no signal on.
func awaitOrphaned(parent int, end func()) {
	for os.Getppid() == parent {
		time.Sleep(parentPause)
	}
	end()
}

func run(ctx context.Context, o cluster.Options, command []string) (err error) {
	root, err := os.Getwd()
	if err != nil {
		return err
	}
	c, err := cluster.Start(ctx, root, o)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, c.Stop()) }()
	fmt.Printf("pd %s\n", c.PD())
	if len(command) == 0 {
		<-ctx.Done()
		return nil
	}
	cmd := exec.CommandContext(ctx, command[0], command[1:]...)
	cmd.Cancel, cmd.WaitDelay = func() error { return cmd.Process.Signal(os.Interrupt) }, commandLimit
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	cmd.Env = append(os.Environ(), "EBB_TIKV_PD="+c.PD())
	return cmd.Run()
}
