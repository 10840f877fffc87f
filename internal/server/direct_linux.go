//go:build !race && !386 && !s390x

package server

import (
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// receive reads what has arrived. The system calls that are made for sockets find theirs sooner than read and write do.
func receive(fd int, b []byte) (int, syscall.Errno) { return direct(syscall.SYS_RECVFROM, fd, b) }

// send hands on what the kernel takes.
func send(fd int, b []byte) (int, syscall.Errno) {
	if len(b) == 0 {
		return 0, 0
	}
	return direct(syscall.SYS_SENDTO, fd, b)
}

// direct is a system call that is not announced.
func direct(trap uintptr, fd int, b []byte) (int, syscall.Errno) {
	for {
		n, _, err := syscall.RawSyscall6(trap, uintptr(fd), uintptr(unsafe.Pointer(&b[0])), uintptr(len(b)), syscall.MSG_DONTWAIT|syscall.MSG_NOSIGNAL, 0, 0)
		switch err {
		case 0:
			return int(n), 0
		case syscall.EINTR:
		default:
			return 0, err
		}
	}
}

// sendParts hands on what the kernel takes of parts. Why it takes no more is said when the rest is sent.
func sendParts(fd int, parts [][]byte) int {
	n, _ := unix.SendmsgBuffers(fd, parts, nil, nil, syscall.MSG_DONTWAIT|syscall.MSG_NOSIGNAL)
	return max(n, 0)
}
