//go:build !unix

package server

import (
	"io/fs"
	"syscall"
)

// restrict does nothing: the folder decides who may connect.
func restrict(fs.FileMode) func(network, address string, c syscall.RawConn) error { return nil }
