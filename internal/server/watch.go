package server

import (
	"errors"
	"os"
	"sync/atomic"
	"time"

	"github.com/ebbdb/ebb/internal/mongoerr"
)

// watchInterval is how often the server looks at its connections: an operation that it sees twice has its client watched.
const watchInterval = 100 * time.Millisecond

// watch sees whether a client hangs up while its operation runs. Only a read tells, with any kind of connection. So where an
// operation is seen twice a goroutine reads on behind its message, and what it gets is the beginning of the next one.
type watch struct {
	// phase counts what the connection does, phases numbers an operation: 0 modulo phases, no operation runs whose client waits
	// for it; working, one does; watched, and a goroutine reads on.
	phase atomic.Int64
	// seen is the phase at the last look. It belongs to the goroutine that looks.
	seen int64
	// ended is closed when the goroutine that reads on has ended. It is set before the phase is watched.
	ended chan struct{}
}

const (
	working int64 = 1
	watched int64 = 2
	phases  int64 = 3
)

// begin notes that an operation runs.
func (w *watch) begin() { w.phase.Add(working) }

// endWatch notes that the operation has ended. The connection's goroutine may read again when it returns.
func (c *Conn) endWatch() {
	w := &c.watch
	phase := w.phase.Load()
	if phase%phases == working && w.phase.CompareAndSwap(phase, phase+phases-working) {
		return
	}
	_ = c.socket.SetReadDeadline(passed)
	<-w.ended
	// Whoever ends the connection says so before it sets the deadline, and next looks there.
	_ = c.socket.SetReadDeadline(time.Time{})
	w.phase.Add(phases - watched)
}

// look has the client watched when the operation that runs is the one that ran at the last look.
func (c *Conn) look() {
	w := &c.watch
	phase := w.phase.Load()
	again := w.seen == phase
	w.seen = phase
	if !again || phase%phases != working {
		return
	}
	ended := make(chan struct{})
	w.ended = ended
	if w.phase.CompareAndSwap(phase, phase-working+watched) {
		go c.readAhead(ended)
	}
}

// readAhead reads until the buffer is full or the client has hung up, which ends the operation.
func (c *Conn) readAhead(ended chan<- struct{}) {
	defer close(ended)
	for {
		room, err := c.reader.ReadAhead()
		if err != nil && !errors.Is(err, os.ErrDeadlineExceeded) {
			c.gone()
		}
		if err != nil || !room {
			return
		}
	}
}

// gone ends what the connection does, because its client has hung up.
func (c *Conn) gone() {
	c.cancel(mongoerr.New(mongoerr.ClientDisconnect, "operation was interrupted because a client disconnected"))
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
			s.endMute(c)
		}
	}
}
