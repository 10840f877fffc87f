package server

import (
	"net"
)

// Conn is one client's connection. A handler reads and sets its state from the goroutine that called Handle.
type Conn struct {
	id     int64
	remote net.Addr
	local  net.Addr
	state  any
}

// ID is the connection's number, 1 for the first one since the server started.
func (c *Conn) ID() int64 { return c.id }

// RemoteAddr is the client's address.
func (c *Conn) RemoteAddr() net.Addr { return c.remote }

// LocalAddr is the address the client connected to.
func (c *Conn) LocalAddr() net.Addr { return c.local }

// State is what the handler keeps for this connection (metadata, authentication); nil before SetState.
func (c *Conn) State() any { return c.state }

// SetState keeps v for as long as the connection lives.
func (c *Conn) SetState(v any) { c.state = v }
