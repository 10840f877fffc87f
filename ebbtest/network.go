package ebbtest

import (
	"context"
	"errors"
	"net"
	"sync"
	"time"

	"github.com/ebbdb/ebb/internal/clock"
)

// network is what lies between the members of a Set. It can be cut.
type network struct {
	mu struct {
		sync.Mutex
		members map[string]int // by their addresses
		cut     [Members]bool
		sent    int64 // bytes from members to others
		slow    int   // how many bytes a second a connection between members carries; 0: as many as it can
		open    map[*wireConn]bool
	}
}

// wireConn is a connection from one member to another.
type wireConn struct {
	net.Conn
	network  *network
	from, to int
}

// Write implements net.Conn.
func (c *wireConn) Write(b []byte) (n int, err error) {
	if n, err = c.Conn.Write(b); err != nil {
		return n, err
	}
	c.network.mu.Lock()
	slow := c.network.mu.slow
	if c.from != c.to {
		c.network.mu.sent += int64(n)
	}
	c.network.mu.Unlock()
	if slow > 0 && c.from != c.to {
		_ = clock.Wait(context.Background(), clock.Wall(), time.Duration(n)*time.Second/time.Duration(slow))
	}
	return n, nil
}

// Close implements net.Conn.
func (c *wireConn) Close() error {
	c.network.mu.Lock()
	delete(c.network.mu.open, c)
	c.network.mu.Unlock()
	return c.Conn.Close()
}

var errCut = errors.New("the network is cut")

func (n *network) begin() { n.mu.members, n.mu.open = map[string]int{}, map[*wireConn]bool{} }

func (n *network) know(i int, addr string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.mu.members[addr] = i
}

func (n *network) isolated(i int) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.mu.cut[i]
}

// dialer connects a member to others.
func (n *network) dialer(from int) func(context.Context, string) (net.Conn, error) {
	return func(ctx context.Context, host string) (net.Conn, error) {
		socket, err := (&net.Dialer{}).DialContext(ctx, "tcp", host)
		if err != nil {
			return nil, err
		}
		n.mu.Lock()
		defer n.mu.Unlock()
		to, known := n.mu.members[host]
		if known && to != from && (n.mu.cut[from] || n.mu.cut[to]) {
			return nil, errors.Join(errCut, socket.Close())
		}
		c := &wireConn{Conn: socket, network: n, from: from, to: to}
		n.mu.open[c] = true
		return c, nil
	}
}

// isolate cuts a member off.
func (n *network) isolate(i int) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.mu.cut[i] = true
	for c := range n.mu.open {
		if c.from != c.to && (c.from == i || c.to == i) {
			_ = c.Conn.Close()
		}
	}
}

func (n *network) slowDown(bytesPerSecond int) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.mu.slow = bytesPerSecond
}

func (n *network) rejoin(i int) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.mu.cut[i] = false
}

func (n *network) heal() {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.mu.cut = [Members]bool{}
}
