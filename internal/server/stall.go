package server

import (
	"cmp"
	"errors"
	"slices"
	"sync/atomic"
	"time"

	"github.com/ebbdb/ebb/internal/memory"
	"github.com/ebbdb/ebb/internal/mongoerr"
	"github.com/ebbdb/ebb/internal/wire"
)

const (
	// stallTimeout is how long a client may take to send or to read the next stallBytes of a message that memory is held for.
	stallTimeout = time.Minute
	stallBytes   = 64 << 10
	// crowdedTimeout is stallTimeout for messages while others wait for memory, and crowdedParts in how many such times a message has to arrive then:
	// who sends it a little at a time would have them wait for as long as he likes.
	crowdedTimeout = 5 * time.Second
	crowdedParts   = 8
	// unreadPatience is how long a large reply is waited for at least when its memory is needed.
	unreadPatience = 2 * time.Second
	// messageTimes is how often a message is there while it is handled: as it came, and in the transaction that it becomes.
	messageTimes = 2
	// compressedTimes is the same of a reply that is compressed.
	compressedTimes = 3
)

// errStopping ends the wait for memory because the server stops.
var errStopping = errors.New("the server stops")

// transfer is what a connection's client has to do next, if memory is held until it has done so.
type transfer struct {
	// busy is set while the client sends a large message or reads a reply.
	busy atomic.Bool
	// arriving is how many bytes the message has that memory is held for and that arrives.
	arriving atomic.Int64
	// held is what the message under way has taken of the budget, and counted the same for the server's memory; the
	// connection's own goroutine alone uses them.
	held    int64
	counted memory.Account
	// unread is how many bytes the reply that is being written has, when that is much, and writing since when it is.
	unread  atomic.Int64
	writing atomic.Int64
	// ended says that the client is not waited for any more.
	ended atomic.Bool

	// The rest belongs to the goroutine that looks at all connections: how many bytes had passed, and since when; zero while it was not busy.
	seen  int64
	since time.Time
}

// admit waits until there is memory for a message that takes size bytes, and of which so many come over the connection.
func (s *Server) admit(c *Conn, size, arriving int) error {
	got, ok := s.budget.acquire(messageTimes*int64(size), s.stopping)
	if !ok {
		return errStopping
	}
	c.transfer.held = got
	c.transfer.counted.Charge(got)
	c.transfer.arriving.Store(int64(arriving))
	c.transfer.busy.Store(true)
	return nil
}

// arrived notes that the message is there, or never will be.
func (c *Conn) arrived() {
	c.transfer.busy.Store(false)
	c.transfer.arriving.Store(0)
}

// handled gives back what the message took.
func (s *Server) handled(c *Conn) {
	s.budget.release(c.transfer.held)
	c.transfer.held = 0
	c.transfer.counted.Close()
}

// sending calls write, which writes out, and has the client watched meanwhile.
func (s *Server) sending(c *Conn, out wire.Outgoing, write func() error) error {
	size := int64(len(out.Body))
	if out.Compressor != wire.Uncompressed {
		size *= compressedTimes
	}
	if size > smallReply {
		c.transfer.writing.Store(s.clock.Now().UnixNano())
		c.transfer.unread.Store(size)
		defer c.transfer.unread.Store(0)
		if used := c.memory.Used(); size > used {
			c.memory.Charge(size - used)
		}
	}
	c.transfer.busy.Store(true)
	defer func() {
		c.transfer.busy.Store(false)
		c.memory.Close()
	}()
	return write()
}

// endUnread is a memory.Holder: it closes the connections whose clients have not read their replies for the longest time.
func (s *Server) endUnread(want int64) (freed int64) {
	type unread struct {
		conn  *Conn
		since int64
		bytes int64
	}
	var all []unread
	before := s.clock.Now().Add(-unreadPatience).UnixNano()
	for _, c := range s.connections() {
		u := unread{c, c.transfer.writing.Load(), c.transfer.unread.Load()}
		if u.bytes > 0 && u.since <= before && !c.transfer.ended.Load() {
			all = append(all, u)
		}
	}
	slices.SortFunc(all, func(a, b unread) int { return cmp.Compare(a.since, b.since) })
	for _, u := range all {
		if freed >= want {
			break
		}
		freed += u.bytes
		s.giveUp(u.conn, "the client does not read its reply, whose memory is needed")
	}
	return freed
}

// stalled says whether the client has passed fewer bytes than so many for too long.
func (c *Conn) stalled(now time.Time, bytes int64, patience time.Duration) bool {
	t := &c.transfer
	passed := c.reader.Received() + c.writer.Written()
	if !t.busy.Load() {
		t.since = time.Time{} // for what it does next counts from when it is seen: nobody may have looked for long
		return false
	}
	if t.since.IsZero() || passed-t.seen >= bytes {
		t.seen, t.since = passed, now
		return false
	}
	return now.Sub(t.since) >= patience
}

// endStalled closes the connection when its client is stalled; whoever reads or writes there ends then.
func (s *Server) endStalled(c *Conn) {
	bytes, patience := int64(stallBytes), stallTimeout
	if c.transfer.unread.Load() == 0 && s.budget.crowded() {
		bytes, patience = max(bytes, c.transfer.arriving.Load()/crowdedParts), crowdedTimeout
	}
	if c.stalled(s.clock.Now(), bytes, patience) {
		s.giveUp(c, "the client neither reads its reply nor sends the rest of its message")
	}
}

// endMute closes the connection when its client has not said for too long what it speaks, or has not done what TLS takes.
func (s *Server) endMute(c *Conn) {
	since := c.greeting.Load()
	if since != 0 && s.clock.Now().UnixNano()-since >= int64(greetingTimeout) {
		c.greeting.Store(0)
		s.giveUp(c, "the client has begun no connection over TLS and asked for nothing")
	}
}

// giveUp closes a connection whose client holds memory and does nothing.
func (s *Server) giveUp(c *Conn, why string) {
	c.transfer.ended.Store(true)
	s.log.Warn("Closing a connection whose client does not go on", "reason", why, "remote", c.Remote(), "connectionId", c.id)
	// A deadline, not Close, which waits until nobody uses the socket.
	c.cancel(mongoerr.New(mongoerr.ClientDisconnect, "%s", why))
	_ = c.socket.SetDeadline(passed)
}
