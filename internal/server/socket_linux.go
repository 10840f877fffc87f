package server

import (
	"io"
	"net"
	"os"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/ebbdb/ebb/internal/wire"
)

// socket is a TCP connection that a poller looks at. Its reads and writes are not announced to Go's scheduler, which they
// would be in the net package, since a system call may last: those on a socket that never blocks do not, and being announced
// they cost more than a command does.
//
// A goroutine that works on the socket holds it. Where there is nothing to read it lets go; where there is no room to write
// it waits.
type socket struct {
	fd            int
	poller        *poller
	conn          *Conn
	local, remote net.Addr

	hold atomic.Int32
	// mu guards what the poller listens for, and so each change of hold from and to deaf and waiting.
	mu sync.Mutex
	// wake ends a wait.
	wake chan struct{}
	// ended says that nobody waits any more; guarded by mu.
	ended bool
	// ending says that the kernel has told of the end of what is to be read, or of an error; the holder reads on until there.
	ending bool
}

// Who works on a socket.
const (
	// free: nobody; who takes it holds it.
	free int32 = iota
	held
	// deaf is held, and the poller does not listen.
	deaf
	// waiting is held by a goroutine that waits for room.
	waiting
)

// hears is what the poller listens for as a rule: data, and the end of it. The kernel tells when there is more than before, and
// once when it begins to listen.
const hears = unix.EPOLLIN | unix.EPOLLRDHUP | unix.EPOLLET

// polled is conn with a poller that looks at it from watch on, nil where that cannot be.
func polled(conn net.Conn, p *poller) *socket {
	tcp, ok := conn.(*net.TCPConn)
	if !ok {
		return nil
	}
	raw, err := tcp.SyscallConn()
	if err != nil {
		return nil
	}
	// The net package looks at each of its sockets with a poller of its own, until it is closed.
	fd := -1
	_ = raw.Control(func(theirs uintptr) { fd, err = unix.FcntlInt(theirs, unix.F_DUPFD_CLOEXEC, 0) })
	if fd < 0 || err != nil {
		return nil
	}
	s := &socket{fd: fd, poller: p, local: conn.LocalAddr(), remote: conn.RemoteAddr(), wake: make(chan struct{}, 1)}
	_ = conn.Close()
	return s
}

// take makes the caller the one who works on s, if nobody is.
func (s *socket) take() bool { return s.hold.CompareAndSwap(free, held) }

// open has the poller look at s, which is held.
func (s *socket) open() error { return s.poller.watch(s) }

// ends and goesOn are heldSocket's.
func (s *socket) ends() bool { return s.ending }
func (s *socket) goesOn()    { s.ending = false }

// pended is heldSocket's.
func (s *socket) pended() { s.poller.finish.add(s.conn) }

// release ends the caller's work on s.
func (s *socket) release() {
	if s.hold.CompareAndSwap(held, free) {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.poller.change(s, hears) // first: who takes s when it is free may close it
	s.hold.Store(free)
}

// heard takes note that the kernel has something to tell of s, and says whether somebody works on it. Who waits goes on; else
// the poller listens no more until s is released.
func (s *socket) heard() (working bool) {
	if s.hold.Load() == free {
		return false
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.hold.CompareAndSwap(waiting, deaf):
		s.wake <- struct{}{}
	case s.hold.CompareAndSwap(held, deaf):
		s.poller.change(s, unix.EPOLLONESHOT) // a hang-up is told once more
	}
	return s.hold.Load() != free
}

// room waits until there is room for more to be written.
func (s *socket) room() error {
	s.conn.giveTurn()
	s.mu.Lock()
	if s.ended {
		s.mu.Unlock()
		return os.ErrDeadlineExceeded
	}
	s.hold.Store(waiting)
	s.poller.change(s, unix.EPOLLOUT|unix.EPOLLONESHOT)
	s.mu.Unlock()
	<-s.wake
	return nil
}

// Read gives what has arrived, and fails with wire.ErrWait when that is nothing.
func (s *socket) Read(b []byte) (int, error) {
	switch n, err := receive(s.fd, b); {
	case err == syscall.EAGAIN:
		return 0, wire.ErrWait
	case err != 0:
		return 0, os.NewSyscallError("read", err)
	case n == 0:
		return 0, io.EOF
	default:
		return n, nil
	}
}

// Write is net.Conn's.
func (s *socket) Write(b []byte) (int, error) {
	for sent := 0; ; {
		n, err := send(s.fd, b[sent:])
		if err == 0 {
			if sent += n; sent == len(b) {
				return sent, nil
			}
			continue
		}
		if err != syscall.EAGAIN {
			return sent, os.NewSyscallError("write", err)
		}
		if err := s.room(); err != nil {
			return sent, err
		}
	}
}

// Close is net.Conn's. Only who holds s calls it.
func (s *socket) Close() error {
	s.poller.forget(s)
	return os.NewSyscallError("close", unix.Close(s.fd))
}

func (s *socket) number() int          { return s.fd }
func (s *socket) LocalAddr() net.Addr  { return s.local }
func (s *socket) RemoteAddr() net.Addr { return s.remote }

// SetDeadline is net.Conn's. A socket knows one kind of deadline, that which has passed; and reads never wait.
func (s *socket) SetDeadline(t time.Time) error   { return s.SetWriteDeadline(t) }
func (s *socket) SetReadDeadline(time.Time) error { return nil }

// SetWriteDeadline ends waits for room, now and later.
func (s *socket) SetWriteDeadline(time.Time) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.ended = true
	if s.hold.CompareAndSwap(waiting, deaf) {
		s.wake <- struct{}{}
	}
	return nil
}

// WriteParts writes parts, with one call of the kernel when it takes them all.
func (s *socket) WriteParts(parts [][]byte) (int64, error) {
	sent := sendParts(s.fd, parts)
	total := int64(sent)
	for _, p := range parts {
		done := min(sent, len(p))
		sent -= done
		n, err := s.Write(p[done:])
		total += int64(n)
		if err != nil {
			return total, err
		}
	}
	return total, nil
}
