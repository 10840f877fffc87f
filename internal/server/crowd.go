package server

import (
	"crypto/tls"
	"net"
	"net/http"
	"sync"
	"time"

	"github.com/ebbdb/ebb/internal/clock"
)

// Crowd accepts a bounded number of connections for an http.Server, whose ConnState is NoteState. Who comes beyond that has the one closed that
// has waited longest between requests, or before its first; only where all of them are at work does it wait.
type Crowd struct {
	net.Listener
	places chan struct{}
	closed chan struct{}
	close  func() error
	mu     struct {
		sync.Mutex
		idle []*visitor // since the longest first
		// waiting says that somebody waits for the next that is idle to be closed.
		waiting bool
	}
}

// NewCrowd accepts most connections of l's at a time.
func NewCrowd(l net.Listener, most int) *Crowd {
	c := &Crowd{Listener: l, places: make(chan struct{}, most), closed: make(chan struct{})}
	c.close = sync.OnceValue(func() error {
		close(c.closed)
		return l.Close()
	})
	return c
}

// Accept implements net.Listener.
func (c *Crowd) Accept() (net.Conn, error) {
	accepted, err := c.Listener.Accept()
	if err != nil {
		return nil, err
	}
	n := &visitor{Conn: accepted, of: c}
	n.close = sync.OnceValue(func() error {
		c.forget(n)
		defer func() { <-c.places }()
		return accepted.Close()
	})
	select {
	case c.places <- struct{}{}:
	default:
		c.closeIdle()
		select {
		case c.places <- struct{}{}:
		case <-c.closed:
			_ = accepted.Close()
			return nil, net.ErrClosed
		}
		c.hasPlace()
	}
	c.rests(n)
	return n, nil
}

// Close implements net.Listener.
func (c *Crowd) Close() error { return c.close() }

// closeIdle closes the connection that has waited longest, or the next that does.
func (c *Crowd) closeIdle() {
	c.mu.Lock()
	c.mu.waiting = true
	longest := c.longest()
	c.mu.Unlock()
	longest.giveWay()
}

// longest is the connection that has waited longest, where somebody waits for its place; nil for none. The caller holds the lock.
func (c *Crowd) longest() *visitor {
	if !c.mu.waiting || len(c.mu.idle) == 0 {
		return nil
	}
	c.mu.waiting = false
	return c.mu.idle[0]
}

// hasPlace notes that nobody waits any more.
func (c *Crowd) hasPlace() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.mu.waiting = false
}

// rests has a connection wait for a request.
func (c *Crowd) rests(n *visitor) {
	c.mu.Lock()
	c.mu.idle = append(without(c.mu.idle, n), n)
	longest := c.longest()
	c.mu.Unlock()
	longest.giveWay()
}

// forget has a connection not wait any more.
func (c *Crowd) forget(n *visitor) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.mu.idle = without(c.mu.idle, n)
}

func without(all []*visitor, n *visitor) []*visitor {
	for i, o := range all {
		if o == n {
			return append(all[:i], all[i+1:]...)
		}
	}
	return all
}

// visitor is one of them.
type visitor struct {
	net.Conn
	of    *Crowd
	close func() error
}

// Close implements net.Conn.
func (n *visitor) Close() error { return n.close() }

// giveWay closes a connection for the sake of another; nil is none.
func (n *visitor) giveWay() {
	if n != nil {
		_ = n.Close()
	}
}

// IgnoreBody has nobody wait for the body of a request that is answered without it: an http.Server would read it first, and for as long as the client
// likes to send it. The connection ends with the answer.
func IgnoreBody(w http.ResponseWriter, r *http.Request) {
	if r.ContentLength != 0 {
		_ = http.NewResponseController(w).SetReadDeadline(passed)
	}
}

// BoundReply ends the connection of a client that takes longer than so to read what is written to it from now on.
func BoundReply(w http.ResponseWriter, patience time.Duration) {
	_ = http.NewResponseController(w).SetWriteDeadline(clock.Wall().Now().Add(patience))
}

// NoteState is http.Server's ConnState.
func NoteState(c net.Conn, state http.ConnState) {
	if secure, is := c.(*tls.Conn); is {
		c = secure.NetConn()
	}
	n, is := c.(*visitor)
	switch {
	case !is:
	case state == http.StateIdle:
		n.of.rests(n)
	case state == http.StateActive:
		n.of.forget(n)
	}
}
