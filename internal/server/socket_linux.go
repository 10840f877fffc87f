//go:build !race

package server

import (
	"io"
	"net"
	"os"
	"syscall"
	"unsafe"
)

// socket is a TCP connection whose reads and writes the scheduler does not hear of. The net package announces every system
// call to it, since one may last; those on a socket that never blocks do not, and being announced they cost more than a
// command does: as soon as the kernel puts the thread aside for a moment, its processor is given to another thread, which
// must be woken for it, and the scheduler's watchman goes round every 20 µs to look for more of that.
type socket struct {
	*net.TCPConn
	in, out transit
}

// transit is one direction of a socket, used by one goroutine.
type transit struct {
	name string
	// call has step tried until it is done, and waits in between. Both are made once, so that nothing is allocated later.
	call func(step func(fd uintptr) bool) error
	step func(fd uintptr) bool
	rest []byte
	done int
	err  syscall.Errno
}

// quick is conn with the reads and writes of a socket, where it can have them.
func quick(conn net.Conn) net.Conn {
	tcp, ok := conn.(*net.TCPConn)
	if !ok {
		return conn
	}
	raw, err := tcp.SyscallConn()
	if err != nil {
		return conn
	}
	s := &socket{TCPConn: tcp, in: transit{name: "read", call: raw.Read}, out: transit{name: "write", call: raw.Write}}
	s.in.step, s.out.step = s.in.read, s.out.write
	return s
}

// Read is net.Conn's.
func (s *socket) Read(b []byte) (int, error) {
	if len(b) == 0 {
		return 0, nil
	}
	n, err := s.in.run(b)
	if n == 0 && err == nil {
		return 0, io.EOF
	}
	return n, err
}

// Write is net.Conn's.
func (s *socket) Write(b []byte) (int, error) {
	if len(b) == 0 {
		return 0, nil
	}
	return s.out.run(b)
}

func (t *transit) run(b []byte) (int, error) {
	t.rest, t.done, t.err = b, 0, 0
	err := t.call(t.step)
	t.rest = nil
	if err == nil && t.err != 0 {
		err = os.NewSyscallError(t.name, t.err)
	}
	return t.done, err
}

// read takes what has arrived; false when that is nothing yet.
func (t *transit) read(fd uintptr) bool {
	n, err := direct(syscall.SYS_READ, fd, t.rest)
	if err == syscall.EAGAIN {
		return false
	}
	t.done, t.err = n, err
	return true
}

// write hands on as much as the kernel takes; false when something is left.
func (t *transit) write(fd uintptr) bool {
	for len(t.rest) > 0 {
		n, err := direct(syscall.SYS_WRITE, fd, t.rest)
		switch {
		case err == syscall.EAGAIN:
			return false
		case err != 0:
			t.err = err
			return true
		}
		t.done += n
		t.rest = t.rest[n:]
	}
	return true
}

// direct is a system call that is not announced. The file descriptor must not block.
func direct(trap, fd uintptr, b []byte) (int, syscall.Errno) {
	for {
		n, _, err := syscall.RawSyscall(trap, fd, uintptr(unsafe.Pointer(&b[0])), uintptr(len(b)))
		switch err {
		case 0:
			return int(n), 0
		case syscall.EINTR:
		default:
			return 0, err
		}
	}
}
