//go:build !linux

package server

import "net"

// polling is nothing on this system: each connection has a goroutine of its own.
type polling struct{ off bool }

func (*polling) start(*Server) error              { return nil }
func (*polling) stop()                            {}
func (*polling) adopt(net.Conn, *Conn) heldSocket { return nil }
