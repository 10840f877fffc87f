package console

import (
	"crypto/tls"
	"net"
	"net/http"
	"sync"
)

// conns accepts a bounded number of connections. Who comes beyond that has the one closed that has waited longest between requests, or
// before its first; only where all of them are at work does it wait.
type conns struct {
	net.Listener
	places chan struct{}
	closed chan struct{}
	close  func() error
	mu     struct {
		sync.Mutex
		idle []*conn // since the longest first
	}
}

func newConns(l net.Listener, most int) *conns {
	c := &conns{Listener: l, places: make(chan struct{}, most), closed: make(chan struct{})}
	c.close = sync.OnceValue(func() error {
		close(c.closed)
		return l.Close()
	})
	return c
}

// Accept implements net.Listener.
func (c *conns) Accept() (net.Conn, error) {
	accepted, err := c.Listener.Accept()
	if err != nil {
		return nil, err
	}
	n := &conn{Conn: accepted, of: c}
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
	}
	c.rests(n)
	return n, nil
}

// Close implements net.Listener.
func (c *conns) Close() error { return c.close() }

// closeIdle closes the connection that has waited longest.
func (c *conns) closeIdle() {
	c.mu.Lock()
	var longest *conn
	if len(c.mu.idle) > 0 {
		longest = c.mu.idle[0]
	}
	c.mu.Unlock()
	if longest != nil {
		_ = longest.Close()
	}
}

// rests has a connection wait for a request.
func (c *conns) rests(n *conn) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.mu.idle = append(without(c.mu.idle, n), n)
}

// forget has a connection not wait any more.
func (c *conns) forget(n *conn) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.mu.idle = without(c.mu.idle, n)
}

func without(all []*conn, n *conn) []*conn {
	for i, o := range all {
		if o == n {
			return append(all[:i], all[i+1:]...)
		}
	}
	return all
}

// conn is one of them.
type conn struct {
	net.Conn
	of    *conns
	close func() error
}

// Close implements net.Conn.
func (n *conn) Close() error { return n.close() }

// noteState is http.Server's ConnState.
func noteState(c net.Conn, state http.ConnState) {
	if secure, is := c.(*tls.Conn); is {
		c = secure.NetConn()
	}
	n, is := c.(*conn)
	switch {
	case !is:
	case state == http.StateIdle:
		n.of.rests(n)
	case state == http.StateActive:
		n.of.forget(n)
	}
}
