//go:build unix && !linux

package server

import "syscall"

// awaitHangUp waits until the peer closed its side, and tells whether that ended the wait rather than a deadline or
// bytes that arrived: without POLLRDHUP what lies behind unread bytes cannot be seen.
func awaitHangUp(raw syscall.RawConn) bool {
	gone := false
	err := raw.Read(func(fd uintptr) bool {
		var peeked [1]byte
		n, _, err := syscall.Recvfrom(int(fd), peeked[:], syscall.MSG_PEEK)
		if err == syscall.EAGAIN || err == syscall.EINTR {
			return false
		}
		gone = err != nil || n == 0
		return true
	})
	return err == nil && gone
}
