package server

import (
	"errors"
	"sync/atomic"
	"time"

	"github.com/ebbdb/ebb/internal/mongoerr"
)

const (
	// stallTimeout is how long a client may take to send or to read the next stallBytes of a message that memory is held for.
	stallTimeout = time.Minute
	stallBytes   = 64 << 10
)

// errStopping ends the wait for memory because the server stops.
var errStopping = errors.New("the server stops")

// transfer is what a connection's client has to do next, if memory is held until it has done so.
type transfer struct {
	// busy is set while the client sends a large message or reads a reply.
	busy atomic.Bool
	// held is what the message under way has taken of the budget; its own goroutine alone uses it.
	held int64

	// The rest belongs to the goroutine that looks at all connections: how many bytes had passed, and since when.
	seen  int64
	since time.Time
}

// admit waits until there is memory for a message of size bytes.
func (s *Server) admit(c *Conn, size int) error {
	got, ok := s.budget.acquire(int64(size), c.giveTurn, s.stopping)
	if !ok {
		return errStopping
	}
	c.transfer.held = got
	c.transfer.busy.Store(true)
	return nil
}

// arrived notes that the message is there, or never will be.
func (c *Conn) arrived() { c.transfer.busy.Store(false) }

// handled gives back what the message took.
func (s *Server) handled(c *Conn) {
	s.budget.release(c.transfer.held)
	c.transfer.held = 0
}

// sending calls write, which writes size bytes, and has the client watched meanwhile.
func (s *Server) sending(c *Conn, size int, write func() error) error {
	if size > smallReply {
		s.budget.charge(int64(size))
		defer s.budget.release(int64(size))
	}
	c.transfer.busy.Store(true)
	defer c.transfer.busy.Store(false)
	return write()
}

// stalled says whether the client has done too little for too long.
func (c *Conn) stalled(now time.Time) bool {
	t := &c.transfer
	passed := c.reader.Received() + c.writer.Written()
	if !t.busy.Load() || t.since.IsZero() || passed-t.seen >= stallBytes {
		t.seen, t.since = passed, now
		return false
	}
	return now.Sub(t.since) >= stallTimeout
}

// endStalled closes the connection when its client is stalled; whoever reads or writes there ends then.
func (s *Server) endStalled(c *Conn) {
	if !c.stalled(s.clock.Now()) {
		return
	}
	s.log.Warn("Closing a connection whose client neither reads its reply nor sends the rest of its message",
		"remote", c.RemoteAddr().String(), "connectionId", c.id)
	// A deadline, not Close, which waits until nobody uses the socket.
	c.cancel(mongoerr.New(mongoerr.ClientDisconnect, "the client neither reads its reply nor sends the rest of its message"))
	_ = c.socket.SetDeadline(passed)
	s.endIdle(c)
}
