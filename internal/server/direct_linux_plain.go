//go:build linux && (race || 386 || s390x)

package server

import (
	"errors"
	"syscall"
)

// receive reads what has arrived. The race detector knows these system calls and takes a read for what comes after a write;
// and on some processors those for sockets have no numbers of their own.
func receive(fd int, b []byte) (int, syscall.Errno) { return repeat(syscall.Read, fd, b) }

// send hands on what the kernel takes.
func send(fd int, b []byte) (int, syscall.Errno) { return repeat(syscall.Write, fd, b) }

func repeat(call func(fd int, b []byte) (int, error), fd int, b []byte) (int, syscall.Errno) {
	for {
		n, err := call(fd, b)
		var number syscall.Errno
		errors.As(err, &number)
		if number != syscall.EINTR {
			return max(n, 0), number
		}
	}
}

// sendParts leaves it all to send.
func sendParts(int, [][]byte) int { return 0 }
