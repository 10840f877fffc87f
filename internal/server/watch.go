package server

import (
	"sync"
	"syscall"
	"time"

	"github.com/ebbdb/ebb/internal/mongoerr"
)

// watchInterval is how often the server looks for operations that last: one is watched when it is seen twice.
const watchInterval = 100 * time.Millisecond

// watch tells a running operation that its client hung up.
type watch struct {
	raw syscall.RawConn // nil where the platform cannot tell

	mu struct {
		sync.Mutex // guards what the connection and the server's look share
		running    bool
		op         int64         // counts operations
		seen       int64         // the operation that ran at the last look
		done       chan struct{} // closed when the goroutine of the current watch ended; nil without one
	}
}

// begin marks that an operation runs from now on.
func (w *watch) begin() {
	w.mu.Lock()
	w.mu.running = true
	w.mu.op++
	w.mu.Unlock()
}

// end marks that it does not, and waits for its watch if there is one.
func (c *Conn) endOperation() {
	w := &c.watch
	w.mu.Lock()
	w.mu.running = false
	done := w.mu.done
	w.mu.done = nil
	w.mu.Unlock()
	if done == nil {
		return
	}
	// A deadline in the past wakes the watch; afterwards reading must work again.
	_ = c.socket.SetReadDeadline(time.Unix(1, 0))
	<-done
	_ = c.socket.SetReadDeadline(time.Time{})
}

// look starts a watch when the operation that runs is the one that ran at the last look.
func (c *Conn) look() {
	w := &c.watch
	if w.raw == nil {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if !w.mu.running || w.mu.done != nil {
		return
	}
	if w.mu.seen != w.mu.op {
		w.mu.seen = w.mu.op
		return
	}
	done := make(chan struct{})
	w.mu.done = done
	go func() {
		defer close(done)
		if awaitHangUp(w.raw) {
			c.cancel(mongoerr.New(mongoerr.ClientDisconnect, "operation was interrupted because a client disconnected"))
		}
	}()
}

// watchAll looks at every connection until stop is closed.
func (s *Server) watchAll(stop <-chan struct{}) {
	for {
		timer := s.clock.NewTimer(watchInterval)
		select {
		case <-timer.C():
		case <-stop:
			timer.Stop()
			return
		}
		for _, c := range s.connections() {
			c.look()
			s.endStalled(c)
		}
	}
}
