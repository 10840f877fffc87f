// Package launch runs ebb as a process of its own, the way an operator would. It knows the start-up line and the signals; it
// knows neither the protocol nor how the program is built.
package launch

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"sync"
	"syscall"
	"time"
)

const (
	startLimit = 20 * time.Second // until the start-up line: an empty or crashed store opens in far less
	stopLimit  = 30 * time.Second // the server promises ten seconds
	logKept    = 64 << 10         // bytes of the log that are shown when something fails
)

// Server is one running process.
type Server struct {
	Addr string // host:port
	cmd  *exec.Cmd
	log  *logTail
	gone chan struct{} // closed once the process has been waited for
}

// Start runs a command that serves on a port of an IPv4 address, and returns once it says that it listens.
func Start(ctx context.Context, cmd *exec.Cmd) (*Server, error) {
	s := &Server{cmd: cmd, log: &logTail{listening: make(chan string, 1)}, gone: make(chan struct{})}
	cmd.Stdout, cmd.Stderr = s.log, s.log
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("start the server: %w", err)
	}
	go func() {
		defer close(s.gone)
		_ = cmd.Wait() // how it ended is read from ProcessState
	}()
	if err := s.listens(ctx); err != nil {
		s.Kill()
		return nil, err
	}
	return s, nil
}

func (s *Server) listens(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, startLimit)
	defer cancel()
	select {
	case s.Addr = <-s.log.listening:
		return nil
	case <-s.gone:
		return fmt.Errorf("the server ended at once: %v\n%s", s.cmd.ProcessState, s.Log())
	case <-ctx.Done():
		return fmt.Errorf("no start-up line with an address (%w):\n%s", ctx.Err(), s.Log())
	}
}

// URI is the connection string of the server, with options such as "directConnection=true" after it.
func (s *Server) URI(options string) string { return "mongodb://" + s.Addr + "/?" + options }

// PID is the number of the process.
func (s *Server) PID() int { return s.cmd.Process.Pid }

// Log is the end of what the server has written.
func (s *Server) Log() string { return s.log.String() }

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
		return fmt.Errorf("the server still ran %v after SIGTERM", stopLimit)
	}
	if code := s.cmd.ProcessState.ExitCode(); code != 0 {
		return fmt.Errorf("the server ended with exit status %d", code)
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

// The start-up line carries the address, whatever the form of the log around it. Lines before it may tell of others.
var address = regexp.MustCompile(`Waiting for connections.*?\b([0-9.]+:[1-9][0-9]*)\b`)

func (l *logTail) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.mu.text.Write(p)
	if !l.mu.told {
		// Only whole lines: a port may be cut in the middle.
		whole := l.mu.text.Bytes()[:bytes.LastIndexByte(l.mu.text.Bytes(), '\n')+1]
		if found := address.FindSubmatch(whole); found != nil {
			l.mu.told = true
			l.listening <- string(found[1])
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
