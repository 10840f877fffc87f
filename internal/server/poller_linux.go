package server

import (
	"errors"
	"fmt"
	"sync"
	"sync/atomic"

	"golang.org/x/sys/unix"
)

// pollBatch is how many sockets one look gives at most. What is left comes with the next.
const pollBatch = 64

// poller answers the quick requests of many connections from one goroutine, that of its lead. A goroutine for each of them would
// cost more to wake than a find by _id does: the thread that waits in the kernel gets here all that has arrived meanwhile, and
// nobody is woken.
//
// A request that may take longer, or must wait for its client, keeps its goroutine, and the lead goes to a new one; see lead.
type poller struct {
	server *Server
	epoll  int
	// end is an eventfd that ends the lead.
	end  int
	lead atomic.Pointer[lead]
	// events, ready and done are the lead's: what the kernel told last, the sockets to attend to, and how many have been. A new
	// lead goes on there, for the kernel does not tell twice.
	events [pollBatch]unix.EpollEvent
	ready  []*socket
	done   int
	over   sync.WaitGroup // of the goroutines that lead or have led, and of those that finish

	mu struct {
		sync.RWMutex
		sockets []*socket // by descriptor
	}
	finish finisher
}

// startPoller starts a poller of s.
func startPoller(s *Server) (*poller, error) {
	p := &poller{server: s, epoll: -1, end: -1}
	p.finish.poller = p
	if err := p.open(); err != nil {
		p.close()
		return nil, fmt.Errorf("start a poller: %w", err)
	}
	first := &lead{poller: p}
	p.lead.Store(first)
	p.over.Go(first.run)
	return p, nil
}

func (p *poller) open() (err error) {
	if p.epoll, err = unix.EpollCreate1(unix.EPOLL_CLOEXEC); err != nil {
		return err
	}
	if p.end, err = unix.Eventfd(0, unix.EFD_CLOEXEC|unix.EFD_NONBLOCK); err != nil {
		return err
	}
	return unix.EpollCtl(p.epoll, unix.EPOLL_CTL_ADD, p.end, &unix.EpollEvent{Events: unix.EPOLLIN, Fd: int32(p.end)})
}

func (p *poller) close() {
	for _, fd := range []int{p.end, p.epoll} {
		if fd >= 0 {
			_ = unix.Close(fd)
		}
	}
}

// stop ends the poller, which has no sockets left.
func (p *poller) stop() {
	_, _ = unix.Write(p.end, []byte{1, 0, 0, 0, 0, 0, 0, 0})
	p.over.Wait()
	p.close()
}

// watch has the poller look at s from now on.
func (p *poller) watch(s *socket) error {
	p.mu.Lock() // an event of the socket that had the number before must not find one that the kernel does not know yet
	defer p.mu.Unlock()
	err := unix.EpollCtl(p.epoll, unix.EPOLL_CTL_ADD, s.fd, &unix.EpollEvent{Events: hears, Fd: int32(s.fd)})
	if err != nil {
		return err
	}
	for len(p.mu.sockets) <= s.fd {
		p.mu.sockets = append(p.mu.sockets, nil)
	}
	p.mu.sockets[s.fd] = s
	return nil
}

// forget is called before s is closed, with which the kernel forgets it too.
func (p *poller) forget(s *socket) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if s.fd < len(p.mu.sockets) && p.mu.sockets[s.fd] == s {
		p.mu.sockets[s.fd] = nil
	}
}

// change has the poller listen for other events of s.
func (p *poller) change(s *socket, events uint32) {
	if err := unix.EpollCtl(p.epoll, unix.EPOLL_CTL_MOD, s.fd, &unix.EpollEvent{Events: events, Fd: int32(s.fd)}); err != nil {
		panic(fmt.Sprintf("server: epoll_ctl: %v", err))
	}
}

// look waits for sockets that have something and that nobody works on; ended says that the poller is.
func (p *poller) look() (ended bool) {
	n, err := unix.EpollWait(p.epoll, p.events[:], -1)
	if err != nil && !errors.Is(err, unix.EINTR) {
		panic(fmt.Sprintf("server: epoll_wait: %v", err))
	}
	p.ready, p.done = p.ready[:0], 0
	p.mu.RLock()
	defer p.mu.RUnlock()
	for _, e := range p.events[:max(n, 0)] {
		if int(e.Fd) == p.end {
			return true
		}
		// A descriptor may belong to another socket by now, which then finds nothing.
		if s := p.at(int(e.Fd)); s != nil && !s.heard() {
			s.ending = e.Events&^unix.EPOLLIN != 0
			p.ready = append(p.ready, s)
		}
	}
	return false
}

// next is what to attend to next, nil for nothing.
func (p *poller) next() *socket {
	if p.done == len(p.ready) {
		return nil
	}
	p.done++
	return p.ready[p.done-1]
}

// at is the socket with a descriptor, nil for none. The caller holds mu.
func (p *poller) at(fd int) *socket {
	if fd >= len(p.mu.sockets) {
		return nil
	}
	return p.mu.sockets[fd]
}
