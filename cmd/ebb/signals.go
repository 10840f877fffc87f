package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"sync"
	"syscall"

	"github.com/ebbdb/ebb/internal/serverlog"
)

// signals heeds what the system sends, as mongod does: SIGHUP, SIGINT and SIGTERM end the server in order, SIGUSR1 begins a new
// log file. Once the server is to end, further ones change nothing: the end has bounds of its own.
type signals struct {
	log    *serverlog.Log
	rotate func() error // or nil
	stop   context.CancelCauseFunc
	come   chan os.Signal
	done   sync.WaitGroup
}

// signalsAtOnce is how many may wait to be looked at.
const signalsAtOnce = 16

// endedBy is why a context ended.
type endedBy struct{ os.Signal }

func (e endedBy) Error() string { return e.String() }

// heed heeds signals from now on. stop is called with the first that ends the server.
func heed(log *serverlog.Log, rotate func() error, stop context.CancelCauseFunc) *signals {
	s := &signals{log: log, rotate: rotate, stop: stop, come: make(chan os.Signal, signalsAtOnce)}
	signal.Notify(s.come, append(rotateSignals(), syscall.SIGHUP, syscall.SIGINT, syscall.SIGTERM)...)
	s.done.Go(s.run)
	return s
}

// end stops that; further signals do what they do to any process.
func (s *signals) end() {
	signal.Stop(s.come)
	close(s.come)
	s.done.Wait()
}

func (s *signals) run() {
	control := s.log.For("CONTROL")
	for sig := range s.come {
		number, _ := sig.(syscall.Signal)
		control.Info("Received signal", "signal", int(number), "error", sig.String())
		if !isRotate(sig) {
			s.stop(endedBy{sig})
			continue
		}
		control.Info("Log rotation initiated")
		if s.rotate == nil {
			continue
		}
		if err := s.rotate(); err != nil {
			control.Error("Log rotation failed", "error", err.Error())
		}
	}
}

func isRotate(sig os.Signal) bool {
	for _, r := range rotateSignals() {
		if sig == r {
			return true
		}
	}
	return false
}

// reasonFor is why the server ends.
func reasonFor(ctx context.Context) string {
	if cause := context.Cause(ctx); cause != nil {
		return fmt.Sprint(cause)
	}
	return "shutdown command"
}
