//go:build unix

package main

import (
	"bufio"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// A server that does not come to be open ends at a signal: here the file that says what the store is gives nothing, ever.
func TestSignalWhileOpening(t *testing.T) {
	for _, sig := range []os.Signal{syscall.SIGTERM, syscall.SIGHUP} {
		dir := t.TempDir()
		startServer(t, dir).stop(t, syscall.SIGTERM)
		format := filepath.Join(dir, "data", "store", "EBB-FORMAT")
		if err := os.Remove(format); err != nil {
			t.Fatal(err)
		}
		if err := syscall.Mkfifo(format, 0o600); err != nil {
			t.Fatal(err)
		}
		cmd := exec.Command(binary, "serve", "--nounixsocket", "--port", "0")
		cmd.Dir = dir
		stdout, err := cmd.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		writer, err := os.OpenFile(format, os.O_WRONLY, 0) // returns when the server reads
		if err != nil {
			t.Fatal(err)
		}
		defer writer.Close()
		if err := cmd.Process.Signal(sig); err != nil {
			t.Fatal(err)
		}
		ended := make(chan error, 1)
		var lines []string
		go func() {
			for in := bufio.NewScanner(stdout); in.Scan(); {
				lines = append(lines, in.Text())
			}
			ended <- cmd.Wait()
		}()
		select {
		case err := <-ended:
			if err != nil || len(lines) == 0 || !strings.Contains(lines[len(lines)-1], "Now exiting") {
				t.Errorf("%v: ended with %v: %q", sig, err, lines)
			}
		case <-time.After(time.Minute):
			_ = cmd.Process.Kill()
			t.Fatalf("%v: it goes on", sig)
		}
	}
}

// Further signals do not cut an end in order short.
func TestSecondSignal(t *testing.T) {
	r := startServer(t, t.TempDir())
	for range 5 {
		if err := r.cmd.Process.Signal(syscall.SIGTERM); err != nil && err != os.ErrProcessDone {
			t.Fatal(err)
		}
	}
	var last string
	for r.lines.Scan() {
		last = parseLine(t, r.lines.Text()).Msg
	}
	if err := r.cmd.Wait(); err != nil || last != "Now exiting" {
		t.Errorf("it ended with %v after %q: %s", err, last, r.stderr)
	}
}

// awaitLines returns the messages of a log file, once one of them is want.
func awaitLines(t *testing.T, path, want string) (messages []string) {
	t.Helper()
	for range 3000 {
		messages = nil
		text, _ := os.ReadFile(path)
		for line := range strings.Lines(string(text)) {
			if !strings.HasSuffix(line, "\n") {
				break
			}
			messages = append(messages, parseLine(t, line).Msg)
			if messages[len(messages)-1] == want {
				return messages
			}
		}
		time.Sleep(10 * time.Millisecond)
	}
	t.Fatalf("%s has no line %q but %q", path, want, messages)
	return nil
}

// SIGUSR1 begins a new log file: the server moves the old one aside, or somebody else has.
func TestRotationBySignal(t *testing.T) {
	for _, reopen := range []bool{false, true} {
		dir := t.TempDir()
		log := filepath.Join(dir, "log")
		args := []string{"serve", "--nounixsocket", "--port", "0", "--logpath", log, "--logappend"}
		if reopen {
			args = append(args, "--logRotate", "reopen")
		}
		cmd := exec.Command(binary, args...)
		cmd.Dir = dir
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		ended := make(chan error, 1)
		go func() { ended <- cmd.Wait() }()
		defer func() { _ = cmd.Process.Kill() }()
		awaitLines(t, log, "Waiting for connections")
		if reopen {
			if err := os.Rename(log, log+".moved"); err != nil {
				t.Fatal(err)
			}
		}
		if err := cmd.Process.Signal(syscall.SIGUSR1); err != nil {
			t.Fatal(err)
		}
		old := log + ".moved"
		for tries := 0; !reopen && old == log+".moved"; tries++ {
			if names, _ := filepath.Glob(log + ".2*"); len(names) == 1 {
				old = names[0]
			}
			if tries == 3000 {
				t.Fatal("nothing was moved aside")
			}
			time.Sleep(10 * time.Millisecond)
		}
		for tries := 0; ; tries++ { // until the new one is there
			if _, err := os.Stat(log); err == nil {
				break
			}
			if tries == 3000 {
				t.Fatal("there is no new file")
			}
			time.Sleep(10 * time.Millisecond)
		}
		if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
			t.Fatal(err)
		}
		if err := <-ended; err != nil {
			t.Fatal(err)
		}
		before, after := awaitLines(t, old, "Log rotation initiated"), awaitLines(t, log, "Now exiting")
		if before[len(before)-1] != "Log rotation initiated" || after[0] != "Received signal" {
			t.Errorf("reopen %v: %q and then %q", reopen, before, after)
		}
	}
}
