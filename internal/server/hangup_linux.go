package server

import (
	"errors"

	"golang.org/x/sys/unix"
)

// hungUp gives the connections whose peer closed its side. It takes no bytes, and bytes that lie unread do not hide the end
// behind them.
func hungUp(conns []*Conn) (gone []*Conn) {
	fds := make([]unix.PollFd, len(conns))
	for i, c := range conns {
		fds[i] = unix.PollFd{Fd: int32(c.watch.fd), Events: unix.POLLRDHUP}
	}
	for len(fds) > 0 {
		_, err := unix.Poll(fds, 0)
		if !errors.Is(err, unix.EINTR) {
			break
		}
	}
	for i, fd := range fds {
		if fd.Revents != 0 {
			gone = append(gone, conns[i])
		}
	}
	return gone
}
