package server

import (
	"sync/atomic"
	"syscall"
	"time"

	"github.com/ebbdb/ebb/internal/mongoerr"
)

// watchInterval is how often the server looks at its connections: an operation that it sees twice has its client watched.
const watchInterval = 100 * time.Millisecond

// watch is what a connection does, for the look at all of them.
type watch struct {
	fd int // the socket's, -1 where it has none; it is only asked about, so that it may be closed and belong to another by then

	// phase is a number that each change raises; it is odd while an operation runs whose client waits for it.
	phase atomic.Int64
	// seen is the phase at the last look. It belongs to the goroutine that looks.
	seen int64
}

// begin and end note that an operation runs.
func (w *watch) begin() { w.phase.Add(1) }
func (w *watch) end()   { w.phase.Add(1) }

// handle is the number that the system knows socket by, -1 for none.
func handle(socket any) int {
	if numbered, ok := socket.(interface{ number() int }); ok {
		return numbered.number()
	}
	sc, ok := socket.(syscall.Conn)
	if !ok {
		return -1
	}
	raw, err := sc.SyscallConn()
	if err != nil {
		return -1
	}
	number := -1
	_ = raw.Control(func(fd uintptr) { number = int(fd) })
	return number
}

// look says whether it has to be known if the client hung up: when the operation that runs is the one that ran at the last
// look.
func (w *watch) look() bool {
	phase := w.phase.Load()
	again := w.seen == phase
	w.seen = phase
	return again && phase%2 == 1 && w.fd >= 0
}

// gone ends what the connection did at the last look, because its client has hung up.
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
		var asked []*Conn
		for _, c := range s.connections() {
			if c.watch.look() {
				asked = append(asked, c)
			}
			s.endStalled(c)
		}
		for _, c := range hungUp(asked) {
			c.gone()
		}
	}
}
