package server

import (
	"net"

	"github.com/ebbdb/ebb/internal/wire"
)

// maxReads is how often a connection is read from, before others wait no longer for it.
const maxReads = 16

// heldSocket is a connection's socket that a poller looks at while nobody holds it. Its reads fail with wire.ErrWait instead of
// waiting; its writes wait, and give the connection's turn away before they do.
type heldSocket interface {
	net.Conn
	// take makes the caller its holder, if there is none.
	take() bool
	// release has the poller call attend as soon as there is something to read.
	release()
	// ends says that there may be no more to read than there is, which nobody is told again; goesOn that there is no end yet.
	ends() bool
	goesOn()
	// pended has the pending reply of its connection finished.
	pended()
	// open has the poller begin.
	open() error
}

// turn is a task that one goroutine has at a time and that stands still while it does something else. Who has something to do
// that may last gives the task to a new goroutine.
type turn interface{ give() }

// giveTurn leaves to another goroutine what this one would do next.
func (c *Conn) giveTurn() {
	if c.turn != nil {
		c.turn.give()
		c.turn = nil
	}
}

// attend answers what has arrived for c, which the caller holds, until there is no more. Afterwards the caller holds c no
// longer.
func (s *Server) attend(c *Conn) {
	for reads := 1; ; reads++ {
		for c.reader.Ready() {
			switch s.next(c) {
			case over:
				s.end(c)
				return
			case pending:
				return
			case partly:
				s.rest(c)
				return
			}
		}
		if c.drained && !c.held.ends() {
			s.rest(c)
			return
		}
		if reads > maxReads {
			c.giveTurn()
		}
		if err := s.fill(c); err != nil {
			s.logReadError(c, err)
			s.end(c)
			return
		}
	}
}

// fill reads what has arrived. What fills less than the buffer is all there is: a read could say so too, and would cost as much
// as this one.
func (s *Server) fill(c *Conn) error {
	full, err := c.reader.Fill()
	c.drained = !full
	if err == wire.ErrWait {
		c.held.goesOn()
		return nil
	}
	return err
}

// rest leaves c until something arrives.
func (s *Server) rest(c *Conn) {
	c.turn = nil
	c.held.release()
	// The order matters: stop sets stopping first and takes who rests afterwards.
	if s.isStopping() && c.held.take() {
		s.dismiss(c)
	}
}

// end is the end of c, which the caller holds.
func (s *Server) end(c *Conn) {
	c.giveTurn()
	s.dismiss(c)
}

// endIdle is the end of c if it rests.
func (s *Server) endIdle(c *Conn) {
	if c.held != nil && c.held.take() {
		go s.dismiss(c)
	}
}
