//go:build !linux || race || 386 || s390x

package server

import "net"

// quick is conn: elsewhere system calls go through the library of the system, or have no number of their own, and the race detector takes a read for what
// comes after a write only when the net package does both.
func quick(conn net.Conn) net.Conn { return conn }
