//go:build !unix

package server

import "syscall"

// awaitHangUp cannot tell on this platform: an operation runs to its end, and the write of its reply fails.
func awaitHangUp(syscall.RawConn) bool { return false }
