//go:build unix && !linux

package server

import "syscall"

// hungUp gives the connections whose peer closed its side and left nothing unread: without POLLRDHUP what lies behind
// unread bytes cannot be seen.
func hungUp(conns []*Conn) (gone []*Conn) {
	for _, c := range conns {
		var peeked [1]byte
		n, _, err := syscall.Recvfrom(c.watch.fd, peeked[:], syscall.MSG_PEEK|syscall.MSG_DONTWAIT)
		if err == nil && n == 0 || err != nil && err != syscall.EAGAIN && err != syscall.EINTR {
			gone = append(gone, c)
		}
	}
	return gone
}
