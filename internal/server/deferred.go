package server

import (
	"errors"
	"sync/atomic"
)

// deferral is how a connection's replies wait for a disk.
type deferral struct {
	conn *Conn
	// later is Request.Later.
	later func()
	// stage says which came first, the handler's return or the end of what it waits for.
	stage atomic.Int32
}

func newDeferral(c *Conn) *deferral {
	d := &deferral{conn: c}
	d.later = d.fired
	return d
}

const (
	// running: neither.
	running int32 = iota
	// awaiting: the handler has returned.
	awaiting
	// settled: there is nothing to wait for any more.
	settled
)

// errPending says that a request is answered later, by who calls finish. The connection is nobody's until then.
var errPending = errors.New("the reply is pending")

// fired is Request.Later.
func (d *deferral) fired() {
	if d.stage.CompareAndSwap(running, settled) {
		return
	}
	d.stage.Store(running)
	d.conn.held.pended()
}

// awaits leaves the connection until fired is called; false when it has been.
func (d *deferral) awaits() bool {
	d.conn.turn = nil
	if d.stage.CompareAndSwap(running, awaiting) {
		return true
	}
	d.stage.Store(running)
	return false
}

// finish gives c's pending reply and attends to what came behind the request.
func (s *Server) finish(c *Conn) {
	_, err := s.reply(c, &c.out, s.conclude(c))
	if s.answered(c, c.message, err) == over {
		s.end(c)
		return
	}
	if c.reader.Ready() || !c.drained || c.held.ends() {
		c.giveTurn() // what comes behind it may last
	}
	s.attend(c)
}

// conclude asks the handler for a pending reply.
func (s *Server) conclude(c *Conn) (reply Reply) {
	defer func() {
		if p := recover(); p != nil {
			reply = s.panicked(c, p)
		}
		s.ran(c)
	}()
	return s.handler.Finish(c)
}
