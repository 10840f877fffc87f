package server

import (
	"errors"
	"syscall"

	"golang.org/x/sys/unix"
)

// awaitHangUp waits until the peer closed its side, and tells whether that ended the wait rather than a deadline.
// It takes no bytes, and bytes that lie unread do not hide the end behind them.
func awaitHangUp(raw syscall.RawConn) bool {
	gone := false
	err := raw.Read(func(fd uintptr) bool {
		gone = hungUp(int32(fd))
		return gone
	})
	return err == nil && gone
}

func hungUp(fd int32) bool {
	fds := []unix.PollFd{{Fd: fd, Events: unix.POLLRDHUP}}
	for {
		n, err := unix.Poll(fds, 0)
		if errors.Is(err, unix.EINTR) {
			continue
		}
		return err == nil && n > 0
	}
}
