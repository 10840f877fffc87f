package server

import (
	"errors"
	"io"
	"os"

	"github.com/ebbdb/ebb/internal/mongoerr"
	"github.com/ebbdb/ebb/internal/serverlog"
	"github.com/ebbdb/ebb/internal/wire"
	"github.com/ebbdb/ebb/internal/yield"
)

// serve answers a connection's requests until one side is done with it.
func (s *Server) serve(c *Conn) {
	defer s.dismiss(c)
	if !s.establish(c) || !s.greet(c) {
		return
	}
	for s.next(c) {
	}
}

// establish waits until the connection may begin. It says whether it may.
func (s *Server) establish(c *Conn) bool {
	if s.opts.Establishment.Admit(c.socket, s.stopping) {
		return true
	}
	if !s.isStopping() {
		s.counters.rejected.Add(1)
		s.log.Info("Connection refused because too many have begun in the last moment", "remote", c.Remote(), "connectionId", c.id, "ctx", "listener")
	}
	return false
}

// next reads a message and answers it. It says whether another may follow.
func (s *Server) next(c *Conn) (goesOn bool) {
	if s.isStopping() || c.transfer.ended.Load() {
		return false
	}
	m, err := c.reader.ReadMessage()
	c.arrived()
	if m == nil {
		s.handled(c)
		s.logReadError(c, err)
		if errors.Is(err, wire.ErrHTTP) {
			s.answerHTTP(c)
		}
		return false
	}
	yield.Arrived()
	s.counters.requests.Add(1)
	s.counters.bytesIn.Add(int64(m.Size))
	err = s.answer(c, m, err)
	m.Release()
	c.memory.Close()
	c.req = Request{}
	s.handled(c)
	if err != nil && !errors.Is(err, errDone) {
		s.log.Debug("Closing the connection", "connectionId", c.id, "error", err.Error())
	}
	return err == nil
}

func (s *Server) isStopping() bool {
	select {
	case <-s.stopping:
		return true
	default:
		return false
	}
}

// errDone ends a connection because the handler said so.
var errDone = errors.New("connection is done")

func (s *Server) logReadError(c *Conn, err error) {
	var frame *wire.FrameError
	switch {
	case errors.As(err, &frame):
		s.log.Warn("Closing a connection whose client does not follow the protocol",
			"remote", c.Remote(), "connectionId", c.id, "error", err.Error())
	case errors.Is(err, io.EOF), errors.Is(err, os.ErrDeadlineExceeded):
	default:
		s.log.Debug("Error receiving request from client", "connectionId", c.id, "error", err.Error())
	}
}

// answer has m handled and writes what there is to reply. An error ends the connection.
func (s *Server) answer(c *Conn, m *wire.Message, invalid error) error {
	out := wire.Outgoing{
		ResponseTo: m.RequestID, OpCode: wire.OpMsg, Compressor: c.replyCompressor(m),
		Flags: m.Flags & wire.FlagChecksumPresent,
	}
	if m.OpCode == wire.OpQuery {
		out.OpCode = wire.OpReply
	}
	c.req = Request{
		RequestID: m.RequestID, OpCode: m.OpCode, Flags: m.Flags, Body: m.Body, Sequences: m.Sequences, Lasting: s.base, Memory: &c.memory,
	}
	switch {
	case invalid != nil:
		return s.refuse(c, out, invalid)
	case m.OpCode != wire.OpMsg:
		if err := s.answerLegacy(c, m, out); err != errCommand {
			return err
		}
	}
	return s.handle(c, out)
}

// refuse answers a message that no handler sees.
func (s *Server) refuse(c *Conn, out wire.Outgoing, err error) error {
	if c.req.Unacknowledged() {
		return nil
	}
	out.Body = mongoerr.Reply(err)
	return s.write(c, out)
}

// handle runs c.req, as often as an exhaust stream goes on, and writes each reply.
func (s *Server) handle(c *Conn, out wire.Outgoing) error {
	for {
		if more, err := s.reply(c, &out, s.run(c)); !more {
			return err
		}
	}
}

// reply writes what was replied to c.req, and says whether the request is to be run once more.
func (s *Server) reply(c *Conn, out *wire.Outgoing, reply Reply) (again bool, err error) {
	if c.req.Unacknowledged() {
		return false, closing(reply)
	}
	if reply.Body == nil {
		return false, errDone
	}
	more := reply.MoreToCome && c.req.ExhaustAllowed() && !reply.Close
	out.Body = reply.Body
	out.Flags &^= wire.FlagMoreToCome
	if more {
		out.Flags |= wire.FlagMoreToCome
	}
	if err := s.write(c, *out); err != nil {
		return false, err
	}
	if !more {
		return false, closing(reply)
	}
	if s.isStopping() || c.ctx.Err() != nil {
		return false, errDone
	}
	// Each reply of a stream answers the one before it.
	out.ResponseTo = c.lastReply
	if reply.Next != nil {
		c.req.Body = reply.Next
	}
	return true, nil
}

func closing(r Reply) error {
	if r.Close {
		return errDone
	}
	return nil
}

// run calls the handler, and turns its panic into a reply.
func (s *Server) run(c *Conn) (reply Reply) {
	s.counters.active.Add(1)
	ctx := c.ctx
	if c.req.Unacknowledged() {
		ctx = s.base // who waits for no reply may well be gone, and that must not undo the work
	} else {
		c.watch.begin()
	}
	defer func() {
		if p := recover(); p != nil {
			reply = s.panicked(c, p)
		}
		s.counters.active.Add(-1)
		if !c.req.Unacknowledged() {
			c.endWatch()
		}
	}()
	return s.handler.Handle(ctx, c, &c.req)
}

// panicked is the reply to a request that the handler failed in.
func (s *Server) panicked(c *Conn, p any) Reply {
	s.log.Error("Operation ended by a panic", "connectionId", c.id, "command", c.req.Body.FirstKey(),
		"panic", serverlog.Panic(p), serverlog.Stack())
	return Reply{Body: mongoerr.Reply(mongoerr.New(mongoerr.UnknownError, "operation ended by an internal error, of which the log tells"))}
}

func (s *Server) write(c *Conn, out wire.Outgoing) error {
	c.lastReply = s.nextID.Add(1)
	out.RequestID = c.lastReply
	return s.sending(c, out, func() error {
		c.secure.hold(len(out.Body))
		n, err := c.writer.WriteMessage(out)
		err = c.secure.let(err)
		s.counters.bytesOut.Add(int64(n))
		return err
	})
}
