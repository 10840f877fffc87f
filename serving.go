package ebb

import (
	"context"
	"time"

	"github.com/ebbdb/ebb/internal/bson"
	"github.com/ebbdb/ebb/internal/clock"
	"github.com/ebbdb/ebb/internal/command"
	"github.com/ebbdb/ebb/internal/handover"
	"github.com/ebbdb/ebb/internal/member"
	"github.com/ebbdb/ebb/internal/mongoerr"
	"github.com/ebbdb/ebb/internal/router"
	"github.com/ebbdb/ebb/internal/server"
	"github.com/ebbdb/ebb/internal/wire"
)

// A server answers by the database that it has at the moment. In a member of a replica set that gives way to another when the member's role
// changes: who works with it is interrupted, and whoever comes meanwhile waits for the next.

// seat is what a connection has at a database.
type seat struct {
	database *database // that it has spoken to last; nil: none yet
	conn     *command.Conn
}

// caller is what the server keeps of a connection.
type caller struct {
	seat
	reads    reader // where another server works on the data
	letters  member.Caller
	behind   router.Client
	loggedIn bool // behind it: the server that has the data may know the client as somebody
	known    bool // behind it: that server has said so
	stands   bool // for a client of another server, which hands its requests on
	// unanswered says that something was handed on to which there is no answer: it may not have been done yet.
	unanswered bool
}

// maxMessage is how large the next message of a client may be: where clients log in, little until it has. Nobody unknown takes memory from others.
func (s *Server) maxMessage(c *server.Conn) int {
	k := c.State().(*caller)
	if !s.opts.Authorization || k.known || k.stands || k.conn != nil && k.conn.HasLoggedIn() {
		return wire.MaxMessageSize
	}
	return int(s.transport.params.MaxUnknown.Get())
}

// Connected implements server.Handler.
func (s *Server) Connected(c *server.Conn) { c.SetState(&caller{}) }

// Disconnected implements server.Handler.
func (s *Server) Disconnected(c *server.Conn) {
	k := c.State().(*caller)
	k.part()
	k.reads.part()
	if s.group != nil {
		s.group.Forget(&k.letters)
	}
	if s.sharing != nil {
		s.sharing.router.Forget(&k.behind)
	}
}

// Handle implements server.Handler: it gives a request to the commands.
func (s *Server) Handle(ctx context.Context, c *server.Conn, req *server.Request) server.Reply {
	k := c.State().(*caller)
	if member.IsLetter(req.Body) {
		return s.letter(ctx, c, k, req)
	}
	if s.sharing != nil {
		if router.IsIntroduction(req.Body) {
			return s.introduced(ctx, c, k, req)
		}
		if isFollowing(req.Body) {
			return amongServers(req, func() (bson.Doc, error) { return s.tellFollower(ctx, c, k, req.Body) })
		}
		if isForBeside(req.Body) {
			return amongServers(req, func() (bson.Doc, error) { return s.answerBeside(ctx, c, k, req.Body) })
		}
		if reply, handed := s.sharing.route(ctx, c, k, req); handed {
			return reply
		}
	}
	d := s.enter(ctx)
	switch {
	case d == nil && s.sharing != nil:
		return goneReply(req)
	case d == nil:
		return server.Reply{Close: true}
	}
	defer d.Leave()
	d.meet(c, &k.seat)
	return reply(d.commands.Handle(ctx, k.conn, request(req)))
}

// amongServers answers what another server asks.
func amongServers(req *server.Request, answer func() (bson.Doc, error)) server.Reply {
	body, err := answer()
	if err != nil {
		return server.Reply{Body: mongoerr.Reply(err), Close: req.Unacknowledged()}
	}
	return server.Reply{Body: body}
}

// enter waits for a database. Where other servers have it in turn there may be none here for long, and it does not wait.
func (s *Server) enter(ctx context.Context) *database {
	if s.sharing != nil {
		return s.serving.TryEnter()
	}
	return s.serving.Enter(ctx)
}

// meet has a connection speak to this database, as whom it was to the one before.
func (d *database) meet(c *server.Conn, k *seat) {
	if k.database == d {
		return
	}
	conn := d.commands.Connect(c.ID(), c.Remote(), c.Local())
	conn.Compress, conn.Compression, conn.Peer, conn.AskedFor = c.NegotiateCompression, c.Compression, c.Peer, c.AskedFor
	if k.database != nil {
		conn.Inherit(k.conn)
		k.database.commands.Disconnect(k.conn)
	}
	k.database, k.conn = d, conn
}

// part has a connection speak to nobody.
func (k *seat) part() {
	if k.database == nil {
		return
	}
	k.database.commands.Disconnect(k.conn)
	k.database, k.conn = nil, nil
}

// letter answers what another member of the replica set says.
func (s *Server) letter(ctx context.Context, c *server.Conn, k *caller, req *server.Request) server.Reply {
	var body bson.Doc
	err := error(mongoerr.New(mongoerr.NoReplicationEnabled, "not running with --replSet"))
	if s.group != nil {
		body, err = s.group.Hear(ctx, &k.letters, req.Body, func() error { return s.admitMember(ctx, c, k) })
	}
	if err != nil {
		return server.Reply{Body: mongoerr.Reply(err), Close: req.Unacknowledged()}
	}
	return server.Reply{Body: bson.Build().Fields(body).Double("ok", 1).Doc()}
}

// admitMember refuses who is no member, where members can show that they are.
func (s *Server) admitMember(ctx context.Context, c *server.Conn, k *caller) error {
	if !s.opts.Authorization && !s.transport.clusterAuth.IsAsked() {
		return nil
	}
	d := s.serving.Enter(ctx)
	if d == nil {
		return context.Cause(ctx)
	}
	defer d.Leave()
	d.meet(c, &k.seat)
	if !k.conn.IsMember() {
		return mongoerr.New(mongoerr.Unauthorized, "this command is for members of the replica set")
	}
	return nil
}

// interruptEvery is how often who works with a database that ends is interrupted: one that was about to begin may not have heard.
const interruptEvery = 10 * time.Millisecond

// slowEnd is after how long is told, again and again, who keeps a database from ending.
const slowEnd = 10 * time.Second

// awaitLeft returns when gone is closed. It calls interrupt again and again until then, and tell where that takes long.
func awaitLeft(gone <-chan struct{}, interrupt, tell func()) {
	for waited := time.Duration(0); ; {
		wait := clock.Wall().NewTimer(interruptEvery)
		select {
		case <-gone:
			wait.Stop()
			return
		case <-wait.C():
		}
		interrupt()
		if waited += interruptEvery; waited%slowEnd == 0 {
			tell()
		}
	}
}

// endDatabase interrupts who works with the database of the moment, and closes it.
func (s *Server) endDatabase(why error) error { return s.endOf(&s.serving, why) }

func (s *Server) endOf(holder *handover.Holder[*database], why error) error {
	d := holder.Current()
	if d == nil {
		return nil
	}
	gone := d.End()
	d.commands.BeginEnd()
	awaitLeft(gone, func() { d.commands.Interrupt(why) }, func() {
		s.log.For("COMMAND").Warn("Operations do not end that were interrupted, and the database waits for them before its role changes or it closes", "operations", d.commands.Underway())
	})
	err := d.close()
	holder.Clear()
	return err
}
