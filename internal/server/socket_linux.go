//go:build !race && !386 && !s390x

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
	// fd is what attend has, and notAttended without.
	fd uintptr
}

const notAttended = ^uintptr(0)

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
	s := &socket{TCPConn: tcp, fd: notAttended, in: transit{name: "read", call: raw.Read}, out: transit{name: "write", call: raw.Write}}
	s.in.step, s.out.step = s.in.read, s.out.write
	return s
}

// attend is attentive's.
func (s *socket) attend(ready func() (done bool)) error {
	defer func() { s.fd = notAttended }()
	return s.in.call(func(fd uintptr) bool {
		s.fd = fd
		return ready()
	})
}

// Read is net.Conn's.
func (s *socket) Read(b []byte) (int, error) {
	if len(b) == 0 {
		return 0, nil
	}
	n, err := s.read(b)
	if n == 0 && err == nil {
		return 0, io.EOF
	}
	return n, err
}

func (s *socket) read(b []byte) (int, error) {
	if s.fd == notAttended {
		return s.in.run(b)
	}
	switch n, err := direct(syscall.SYS_RECVFROM, s.fd, b); err {
	case 0:
		return n, nil
	case syscall.EAGAIN:
		return 0, errNothing
	default:
		return 0, os.NewSyscallError(s.in.name, err)
	}
}

// Write is net.Conn's.
func (s *socket) Write(b []byte) (int, error) {
	if len(b) == 0 {
		return 0, nil
	}
	sent := 0
	if s.fd != notAttended { // nearly always the kernel takes it all, and there is nothing to wait for
		sent, _ = direct(syscall.SYS_SENDTO, s.fd, b) // the error comes again
		if sent == len(b) {
			return sent, nil
		}
	}
	n, err := s.out.run(b[sent:])
	return sent + n, err
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
	n, err := direct(syscall.SYS_RECVFROM, fd, t.rest)
	if err == syscall.EAGAIN {
		return false
	}
	t.done, t.err = n, err
	return true
}

// write hands on as much as the kernel takes; false when something is left.
func (t *transit) write(fd uintptr) bool {
	for len(t.rest) > 0 {
		n, err := direct(syscall.SYS_SENDTO, fd, t.rest)
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

// direct is a system call that is not announced. Those that are made for sockets find theirs sooner than read and write do.
func direct(trap, fd uintptr, b []byte) (int, syscall.Errno) {
	for {
		n, _, err := syscall.RawSyscall6(trap, fd, uintptr(unsafe.Pointer(&b[0])), uintptr(len(b)), syscall.MSG_DONTWAIT|syscall.MSG_NOSIGNAL, 0, 0)
		switch err {
		case 0:
			return int(n), 0
		case syscall.EINTR:
		default:
			return 0, err
		}
	}
}
