//go:build !linux || race

package server

import "net"

// quick is conn: elsewhere system calls go through the library of the system, and the race detector takes a read for what
// comes after a write only when the net package does both.
func quick(conn net.Conn) net.Conn { return conn }
