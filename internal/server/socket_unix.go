//go:build unix

package server

import (
	"io/fs"
	"syscall"
)

// restrict gives a socket its mode before it has a name; where the system does not heed that, it gets it a moment later.
func restrict(mode fs.FileMode) func(network, address string, c syscall.RawConn) error {
	return func(_, _ string, c syscall.RawConn) error {
		return c.Control(func(fd uintptr) { _ = syscall.Fchmod(int(fd), uint32(mode.Perm())) })
	}
}
