package ebb

import (
	"context"
	"sync"
	"sync/atomic"

	"github.com/ebbdb/ebb/internal/command"
	"github.com/ebbdb/ebb/internal/mongoerr"
	"github.com/ebbdb/ebb/internal/server"
)

// A server answers by the database that it has at the moment. In a member of a replica set that gives way to another when the member's role
// changes: who works with it is interrupted, and whoever comes meanwhile waits for the next.

// serving is where they wait.
type serving struct {
	mu   sync.Mutex    // guards next
	next chan struct{} // closed when there is another database; nil where nobody waits
}

// enter is the database of the moment, to be left when the caller is done with it; nil when ctx has ended.
func (v *serving) enter(ctx context.Context, s *Server) *database {
	for {
		if d := s.current.Load(); d != nil && d.users.enter() {
			return d
		}
		v.mu.Lock()
		if d := s.current.Load(); d != nil && d.users.enter() {
			v.mu.Unlock()
			return d
		}
		if v.next == nil {
			v.next = make(chan struct{})
		}
		next := v.next
		v.mu.Unlock()
		select {
		case <-next:
		case <-ctx.Done():
			return nil
		}
	}
}

// become has the server answer by a database, and wakes who waits for one.
func (v *serving) become(s *Server, d *database) {
	v.mu.Lock()
	defer v.mu.Unlock()
	s.current.Store(d)
	if v.next != nil {
		close(v.next)
		v.next = nil
	}
}

// users counts who works with a database.
type users struct {
	count atomic.Int64 // usersEnded less where nobody is let in any more
	gone  chan struct{}
	once  sync.Once
}

const usersEnded = 1 << 40

func (u *users) enter() bool {
	if u.count.Add(1) > 0 {
		return true
	}
	u.leave()
	return false
}

func (u *users) leave() {
	if u.count.Add(-1) == -usersEnded {
		u.once.Do(func() { close(u.gone) })
	}
}

// end lets nobody in any more. What it returns is closed when nobody is there. It is called once.
func (u *users) end() <-chan struct{} {
	u.gone = make(chan struct{})
	u.count.Add(1) // so that gone is there for whoever leaves last
	u.count.Add(-usersEnded)
	u.leave()
	return u.gone
}

// caller is what the server keeps of a connection.
type caller struct {
	database *database // that it has spoken to last; nil: none yet
	conn     *command.Conn
	// isMember says that it has shown to be another member of the replica set.
	isMember bool
	// letter is a message between members that has not come as a whole.
	letter []byte
}

// Connected implements server.Handler.
func (s *Server) Connected(c *server.Conn) { c.SetState(&caller{}) }

// Disconnected implements server.Handler.
func (s *Server) Disconnected(c *server.Conn) {
	if k := c.State().(*caller); k.database != nil {
		k.database.commands.Disconnect(k.conn)
	}
}

// Handle implements server.Handler: it gives a request to the commands.
func (s *Server) Handle(ctx context.Context, c *server.Conn, req *server.Request) server.Reply {
	k := c.State().(*caller)
	if isLetter(req) {
		return s.letter(ctx, c, k, req)
	}
	d := s.serving.enter(ctx, s)
	if d == nil {
		return server.Reply{Close: true}
	}
	defer d.users.leave()
	d.meet(c, k)
	return reply(d.commands.Handle(ctx, k.conn, request(req)))
}

// meet has a connection speak to this database, as whom it was to the one before.
func (d *database) meet(c *server.Conn, k *caller) {
	if k.database == d {
		return
	}
	conn := d.commands.Connect(c.ID(), c.Remote(), c.Local())
	conn.Compress, conn.Compression, conn.Peer = c.NegotiateCompression, c.Compression, c.Peer
	if k.database != nil {
		conn.Inherit(k.conn)
		k.database.commands.Disconnect(k.conn)
	}
	k.database, k.conn = d, conn
}

// errDeposed is what those are told whom a change of roles interrupts.
func errDeposed() error {
	return mongoerr.New(mongoerr.InterruptedDueToReplStateChange, "operation was interrupted")
}
