// Package binary builds the real ebb and runs it as its own process, the way an operator would. It knows the command line,
// the start-up line and the signals; it does not know the protocol.
package binary

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"sync"
	"syscall"
	"testing"
	"time"

	// Go keeps the results of tests whose inputs have not changed; the server is one of them.
	_ "github.com/ebbdb/ebb"
)

const (
	startLimit = 20 * time.Second // until the start-up line: an empty or crashed store opens in far less
	stopLimit  = 20 * time.Second // the server promises ten seconds
	logKept    = 64 << 10         // bytes of the log that are shown when something fails
)

// Build compiles cmd/ebb into a folder that goes away with the test.
func Build(tb testing.TB) string {
	tb.Helper()
	out := filepath.Join(tb.TempDir(), "ebb")
	if runtime.GOOS == "windows" {
		out += ".exe"
	}
	build := exec.Command("go", "build", "-o", out, "github.com/ebbdb/ebb/cmd/ebb")
	if said, err := build.CombinedOutput(); err != nil {
		tb.Fatalf("building cmd/ebb: %v\n%s", err, said)
	}
	return out
}

// Server is one running process.
type Server struct {
	Addr string // host:port
	cmd  *exec.Cmd
	log  *logTail
	gone chan struct{} // closed once the process has been waited for
}

// URI is the connection string of the server, with options such as "directConnection=true" after it.
func (s *Server) URI(options string) string { return "mongodb://" + s.Addr + "/?" + options }

// Log is the end of what the server has written.
func (s *Server) Log() string { return s.log.String() }

// Start runs "ebb serve" on a free port of the loopback interface and returns once it says that it listens. The process
// is stopped when the test ends.
func Start(tb testing.TB, path string, args ...string) *Server {
	tb.Helper()
	s := &Server{
		cmd:  exec.Command(path, append([]string{"serve", "--port", "0"}, args...)...),
		log:  &logTail{listening: make(chan string, 1)},
		gone: make(chan struct{}),
	}
	s.cmd.Stdout, s.cmd.Stderr = s.log, s.log
	if err := s.cmd.Start(); err != nil {
		tb.Fatalf("starting %s: %v", path, err)
	}
	go func() {
		defer close(s.gone)
		_ = s.cmd.Wait() // how it ended is read from ProcessState
	}()
	tb.Cleanup(func() {
		if err := s.Stop(); err != nil {
			tb.Errorf("stopping the server: %v\n%s", err, s.Log())
		}
	})

	ctx, cancel := context.WithTimeout(tb.Context(), startLimit)
	defer cancel()
	select {
	case s.Addr = <-s.log.listening:
	case <-s.gone:
		tb.Fatalf("the server ended at once: %v\n%s", s.cmd.ProcessState, s.Log())
	case <-ctx.Done():
		tb.Fatalf("no start-up line with an address after %v:\n%s", startLimit, s.Log())
	}
	return s
}

// Stop asks the process to end and waits for it. It is an error when that takes too long or ends in a failure; stopping
// a process that has been killed is not.
func (s *Server) Stop() error {
	if s.ended() {
		return nil
	}
	if err := s.cmd.Process.Signal(syscall.SIGTERM); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return err
	}
	select {
	case <-s.gone:
	case <-time.After(stopLimit):
		s.Kill()
		return fmt.Errorf("still running %v after SIGTERM", stopLimit)
	}
	if code := s.cmd.ProcessState.ExitCode(); code != 0 {
		return fmt.Errorf("exit status %d", code)
	}
	return nil
}

// Kill is kill -9: the process gets no chance to write anything.
func (s *Server) Kill() {
	_ = s.cmd.Process.Kill() // it may have ended by itself
	<-s.gone
}

// Crashed says how the process ended when nobody asked it to, or nothing.
func (s *Server) Crashed() string {
	if !s.ended() {
		return ""
	}
	return s.cmd.ProcessState.String()
}

func (s *Server) ended() bool {
	select {
	case <-s.gone:
		return true
	default:
		return false
	}
}

// logTail keeps the end of a process's output and looks for the address in it.
type logTail struct {
	listening chan string

	mu struct { // guards all below
		sync.Mutex
		text bytes.Buffer
		told bool
	}
}

// The start-up line carries the address, whatever the form of the log around it.
var address = regexp.MustCompile(`\b127\.0\.0\.1:([1-9][0-9]*)\b`)

func (l *logTail) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.mu.text.Write(p)
	if !l.mu.told {
		// Only whole lines: a port may be cut in the middle.
		whole := l.mu.text.Bytes()[:bytes.LastIndexByte(l.mu.text.Bytes(), '\n')+1]
		if found := address.Find(whole); found != nil {
			l.mu.told = true
			l.listening <- string(found)
		}
	}
	if over := l.mu.text.Len() - logKept; over > 0 {
		l.mu.text.Next(over)
	}
	return len(p), nil
}

func (l *logTail) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.mu.text.String()
}
