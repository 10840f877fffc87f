package server

import (
	"runtime"
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

	// phase is a number that each change raises, and in its low bits what the connection does.
	phase atomic.Int64
	// seen is the phase at the last look, asked the last that was idle and whose client was asked about. They belong to the
	// goroutine that looks.
	seen, asked int64
}

// What a connection does. Its own goroutine changes it, but for nudging and nudged, which come after idle alone.
const (
	busy int64 = iota
	// working is running an operation whose client waits for it.
	working
	// idle is waiting for a message, having stopped reading because there was no more.
	idle
	// nudging and nudged are idle with a deadline in the past that ends the wait.
	nudging
	nudged

	phaseBits = 3
)

func doing(phase int64) int64 { return phase & (1<<phaseBits - 1) }

// turn notes that the connection does something else from now on.
func (w *watch) turn(to int64) { w.phase.Store((w.phase.Load()>>phaseBits+1)<<phaseBits | to) }

// handle is the number that the system knows socket by, -1 for none.
func handle(socket any) int {
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
// look; and once in each wait, because whoever stops reading before the end may have missed that the end is near.
func (w *watch) look() bool {
	phase := w.phase.Load()
	if w.fd < 0 || w.seen != phase {
		w.seen = phase
		return false
	}
	switch doing(phase) {
	case working:
		return true
	case idle:
		first := w.asked != phase
		w.asked = phase
		return first
	}
	return false
}

// gone ends what the connection did at the last look, because its client has hung up.
func (c *Conn) gone() {
	w := &c.watch
	switch doing(w.seen) {
	case working:
		c.cancel(mongoerr.New(mongoerr.ClientDisconnect, "operation was interrupted because a client disconnected"))
	case idle:
		if w.phase.CompareAndSwap(w.seen, w.seen-idle+nudging) {
			_ = c.socket.SetReadDeadline(time.Unix(1, 0))
			w.phase.Store(w.seen - idle + nudged)
		}
	}
}

// awake ends a wait, and says whether it was nudged.
func (c *Conn) awake() bool {
	w := &c.watch
	if phase := w.phase.Load(); doing(phase) == idle && w.phase.CompareAndSwap(phase, phase-idle+busy) || doing(phase) < idle {
		return false
	}
	for doing(w.phase.Load()) != nudged {
		runtime.Gosched()
	}
	_ = c.socket.SetReadDeadline(time.Time{})
	w.turn(busy)
	return true
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
