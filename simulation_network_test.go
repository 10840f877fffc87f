package ebb

import (
	"context"
	"errors"
	"io"
	"math/rand/v2"
	"net"
	"os"
	"sync"
	"syscall"
	"time"

	"github.com/ebbdb/ebb/internal/clock"
)

// simNetwork is what lies between the machines of a simulation: connections in memory. What is written on one takes a while to arrive, arrives in
// order, and waits where the way is cut and for as long again, as on TCP. Machines are known by numbers; clients have numbers below zero, and nobody cuts them off.
type simNetwork struct {
	mu struct {
		sync.Mutex
		random    *rand.Rand
		listeners map[string]*simListener
		cut       map[[2]int]bool // from and to
		conns     map[*simConn]bool
		dark      map[int]bool  // machines that nobody connects to, nor they to anybody
		slow      time.Duration // how long a message may take beside what all take
		opened    uint16
	}
}

func newSimNetwork(random *rand.Rand) *simNetwork {
	n := &simNetwork{}
	n.mu.random = random
	n.mu.listeners, n.mu.cut, n.mu.conns, n.mu.dark = map[string]*simListener{}, map[[2]int]bool{}, map[*simConn]bool{}, map[int]bool{}
	return n
}

const (
	simLatency = 200 * time.Microsecond
	// simBuffer is how many bytes wait on a way until who writes has to wait.
	simBuffer = 1 << 20
)

// simListener is where a machine takes connections.
type simListener struct {
	network  *simNetwork
	place    int
	addr     *net.TCPAddr
	incoming chan net.Conn
	closed   chan struct{}
	once     sync.Once
}

// listen has a machine take connections at an address from now on.
func (n *simNetwork) listen(place int, addr *net.TCPAddr) *simListener {
	l := &simListener{network: n, place: place, addr: addr, incoming: make(chan net.Conn, 128), closed: make(chan struct{})}
	n.mu.Lock()
	defer n.mu.Unlock()
	n.mu.listeners[addr.String()] = l
	return l
}

func (l *simListener) Addr() net.Addr { return l.addr }

func (l *simListener) Accept() (net.Conn, error) {
	select {
	case c := <-l.incoming:
		return c, nil
	case <-l.closed:
		return nil, net.ErrClosed
	}
}

func (l *simListener) Close() error {
	l.once.Do(func() {
		l.network.mu.Lock()
		if l.network.mu.listeners[l.addr.String()] == l {
			delete(l.network.mu.listeners, l.addr.String())
		}
		l.network.mu.Unlock()
		close(l.closed)
		for {
			select {
			case c := <-l.incoming:
				_ = c.Close()
				continue
			default:
			}
			break
		}
	})
	return nil
}

// dialer connects a machine to others.
func (n *simNetwork) dialer(from int) func(context.Context, string) (net.Conn, error) {
	return func(ctx context.Context, host string) (net.Conn, error) {
		for {
			if err := clock.Wait(ctx, clock.Wall(), simLatency); err != nil {
				return nil, err
			}
			n.mu.Lock()
			l := n.mu.listeners[host]
			if n.mu.dark[from] || l != nil && n.mu.dark[l.place] {
				l = nil
			}
			reached := l != nil && !n.mu.cut[[2]int{from, l.place}] && !n.mu.cut[[2]int{l.place, from}]
			n.mu.Unlock()
			switch {
			case l == nil:
				return nil, syscall.ECONNREFUSED
			case reached:
				return n.connect(from, l)
			}
			if err := clock.Wait(ctx, clock.Wall(), 50*time.Millisecond); err != nil {
				return nil, err
			}
		}
	}
}

func (n *simNetwork) connect(from int, l *simListener) (net.Conn, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.mu.dark[from] || n.mu.dark[l.place] {
		return nil, syscall.ECONNREFUSED
	}
	n.mu.opened++
	there, back := n.newWay(from, l.place), n.newWay(l.place, from)
	own := &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 1<<15 + int(n.mu.opened)%(1<<15)}
	a := &simConn{network: n, in: back, out: there, local: own, remote: l.addr}
	b := &simConn{network: n, in: there, out: back, local: l.addr, remote: own}
	select {
	case l.incoming <- b:
	default:
		return nil, syscall.ECONNREFUSED
	}
	n.mu.conns[a], n.mu.conns[b] = true, true
	return a, nil
}

// setCut cuts ways, or lets all be open where there are none. What is under way waits.
func (n *simNetwork) setCut(ways map[[2]int]bool) {
	n.mu.Lock()
	n.mu.cut = ways
	n.mu.Unlock()
	n.wake()
}

func (n *simNetwork) setSlow(d time.Duration) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.mu.slow = d
}

func (n *simNetwork) wake() {
	for _, c := range n.all() {
		c.in.tell()
		c.out.tell()
	}
}

func (n *simNetwork) all() (all []*simConn) {
	n.mu.Lock()
	defer n.mu.Unlock()
	for c := range n.mu.conns {
		all = append(all, c)
	}
	return all
}

// sever breaks all connections of a machine at once: nothing of what it does from now on is heard.
func (n *simNetwork) sever(place int) {
	for _, c := range n.all() {
		if c.in.from == place || c.in.to == place {
			c.in.breakOff()
			c.out.breakOff()
		}
	}
}

// darken has a machine reach nobody and be reached by nobody, while what ran there ends; or ends that.
func (n *simNetwork) darken(place int, dark bool) {
	n.mu.Lock()
	n.mu.dark[place] = dark
	n.mu.Unlock()
	n.sever(place)
}

// delay is how long a message takes.
func (n *simNetwork) delay(random *rand.Rand) time.Duration {
	n.mu.Lock()
	slow := n.mu.slow
	n.mu.Unlock()
	d := simLatency + time.Duration(random.Int64N(int64(2*time.Millisecond)))
	if random.IntN(50) == 0 {
		d += time.Duration(random.Int64N(int64(100 * time.Millisecond)))
	}
	if slow > 0 {
		d += time.Duration(random.Int64N(int64(slow)))
	}
	return d
}

func (n *simNetwork) isCut(from, to int) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.mu.cut[[2]int{from, to}]
}

// simWay is one direction of a connection.
type simWay struct {
	network  *simNetwork
	from, to int
	mu       sync.Mutex // guards all below
	random   *rand.Rand
	parts    []simPart
	bytes    int
	closed   bool // by who writes: what is under way arrives
	gone     bool // who reads has closed it
	broken   bool
	last     time.Time // when the youngest part arrives
	waits    time.Time // since when something waits for the way to be open again
	readBy   time.Time
	writeBy  time.Time
	changed  chan struct{} // closed when any of that changes
}

type simPart struct {
	at   time.Time
	data []byte
}

// newWay is called with the network's mutex held.
func (n *simNetwork) newWay(from, to int) *simWay {
	return &simWay{network: n, from: from, to: to, random: rand.New(rand.NewPCG(n.mu.random.Uint64(), 1)), changed: make(chan struct{})}
}

// change changes something, and tells who waits.
func (w *simWay) change(f func()) {
	w.mu.Lock()
	defer w.mu.Unlock()
	f()
	w.changes()
}

// changes tells who waits. The caller holds mu.
func (w *simWay) changes() {
	close(w.changed)
	w.changed = make(chan struct{})
}

func (w *simWay) tell()     { w.change(func() {}) }
func (w *simWay) breakOff() { w.change(func() { w.broken = true }) }

// attempt calls f until it says that it is done, whenever something has changed, the time that f returns has come, or the deadline has.
func (w *simWay) attempt(deadline *time.Time, f func(now time.Time) (at time.Time, done bool, err error)) error {
	for {
		w.mu.Lock()
		now := clock.Wall().Now()
		at, done, err := f(now)
		by := *deadline
		changed := w.changed
		w.mu.Unlock()
		switch {
		case done:
			return err
		case !by.IsZero() && !now.Before(by):
			return os.ErrDeadlineExceeded
		case at.IsZero() && by.IsZero():
			<-changed
			continue
		case at.IsZero() || !by.IsZero() && by.Before(at):
			at = by
		}
		timer := clock.Wall().NewTimer(at.Sub(now))
		select {
		case <-changed:
		case <-timer.C():
		}
		timer.Stop()
	}
}

func (w *simWay) read(b []byte) (n int, err error) {
	err = w.attempt(&w.readBy, func(now time.Time) (at time.Time, done bool, err error) {
		cut := w.network.isCut(w.from, w.to)
		switch {
		case w.gone:
			return at, true, net.ErrClosed
		case w.broken:
			return at, true, syscall.ECONNRESET
		case cut || len(w.parts) == 0 && !w.closed:
			if cut && len(w.parts) > 0 && w.waits.IsZero() {
				w.waits = now
			}
			return at, false, nil
		case len(w.parts) == 0:
			return at, true, io.EOF
		}
		w.goOn(now)
		p := &w.parts[0]
		if p.at.After(now) {
			return p.at, false, nil
		}
		if n = copy(b, p.data); n == len(p.data) {
			w.parts = w.parts[1:]
		} else {
			p.data = p.data[n:]
		}
		wasFull := w.bytes >= simBuffer
		if w.bytes -= n; wasFull && w.bytes < simBuffer {
			w.changes()
		}
		return at, true, nil
	})
	return n, err
}

// simLongestWait is the longest that what has waited waits on.
const simLongestWait = 2 * time.Minute

// goOn is called where the way is open. What has waited arrives when it is tried again, which TCP does less and less often: after about as long again.
func (w *simWay) goOn(now time.Time) {
	if w.waits.IsZero() {
		return
	}
	next := now.Add(min(now.Sub(w.waits), simLongestWait))
	for i := range w.parts {
		if p := &w.parts[i]; p.at.Before(next) {
			p.at = next
		}
	}
	if w.last.Before(next) {
		w.last = next
	}
	w.waits = time.Time{}
}

func (w *simWay) write(b []byte) (n int, err error) {
	delay := w.network.delay(w.random)
	err = w.attempt(&w.writeBy, func(now time.Time) (at time.Time, done bool, err error) {
		switch {
		case w.closed:
			return at, true, net.ErrClosed
		case w.broken, w.gone:
			return at, true, syscall.EPIPE
		case w.bytes >= simBuffer:
			return at, false, nil
		}
		arrives := now.Add(delay)
		if arrives.Before(w.last) {
			arrives = w.last
		}
		w.last = arrives
		w.parts = append(w.parts, simPart{arrives, append([]byte{}, b...)})
		w.bytes += len(b)
		n = len(b)
		w.changes()
		return at, true, nil
	})
	return n, err
}

// simConn is one end of a connection.
type simConn struct {
	network       *simNetwork
	in, out       *simWay
	local, remote *net.TCPAddr
}

var _ net.Conn = (*simConn)(nil)

func (c *simConn) Read(b []byte) (int, error)  { return c.in.read(b) }
func (c *simConn) Write(b []byte) (int, error) { return c.out.write(b) }

func (c *simConn) Close() error {
	c.network.mu.Lock()
	delete(c.network.mu.conns, c)
	c.network.mu.Unlock()
	c.out.change(func() { c.out.closed = true })
	c.in.change(func() { c.in.gone = true })
	return nil
}

func (c *simConn) LocalAddr() net.Addr  { return c.local }
func (c *simConn) RemoteAddr() net.Addr { return c.remote }

func (c *simConn) SetDeadline(t time.Time) error {
	return errors.Join(c.SetReadDeadline(t), c.SetWriteDeadline(t))
}

func (c *simConn) SetReadDeadline(t time.Time) error {
	c.in.change(func() { c.in.readBy = t })
	return nil
}

func (c *simConn) SetWriteDeadline(t time.Time) error {
	c.out.change(func() { c.out.writeBy = t })
	return nil
}
