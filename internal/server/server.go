package server

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"github.com/ebbdb/ebb/internal/clock"
	"github.com/ebbdb/ebb/internal/establishment"
	"github.com/ebbdb/ebb/internal/memory"
	"github.com/ebbdb/ebb/internal/mongoerr"
	"github.com/ebbdb/ebb/internal/netrange"
	"github.com/ebbdb/ebb/internal/wire"
)

const (
	// grace is how long running operations may go on once the server was told to stop; then they are interrupted.
	grace = 10 * time.Second
	// lastCall is how long an interrupted operation may take to end and have its reply written.
	lastCall = 5 * time.Second
	// acceptPause is the wait after a failed accept: mostly the process is out of file descriptors.
	acceptPause = 100 * time.Millisecond
)

// passed is a deadline that ends all waits.
var passed = time.Unix(1, 0)

// Options say how a server listens.
type Options struct {
	// Addresses are bindIp's entries: IP addresses, host names, or "*".
	Addresses []string
	// Port is 0 for any free one.
	Port int
	// Listener, unless nil, stands in the place of all addresses, for tests.
	Listener net.Listener
	// Sockets are the paths of Unix domain sockets to listen on as well.
	Sockets []Socket
	// TLS is nil for a server that speaks none.
	TLS *TLS
	// MaxConns bounds the connections at one time; those beyond are accepted and closed, as MongoDB does.
	MaxConns int
	// Override are those who come in all the same: addresses, ranges of them in CIDR notation, and paths of Unix domain sockets.
	Override []string
	// Establishment limits how many connections begin a second; nil: nothing does.
	Establishment *establishment.Limiter
	// Compressors are the names that hello may settle on.
	Compressors []string
	// MaxMessage is how large the next message of a client may be; nil: wire.MaxMessageSize. It is asked on the connection's own goroutine.
	MaxMessage func(*Conn) int
	// InFlightBytes bounds the memory of large messages; 0 is inFlightBytes, or less where Memory has little.
	InFlightBytes int64
	// Memory is what messages and replies take theirs from; nil: they take what they like.
	Memory *memory.Governor
	// Quiet leaves the lines about connections out of the log.
	Quiet bool
	Log   *slog.Logger
	// Clock paces what has to do with sockets; it is the wall clock even where the database's time is turned by hand.
	Clock clock.Clock
}

// inFlightBytes is what large messages may take.
func (o Options) inFlightBytes() int64 {
	bytes := cmp.Or(o.InFlightBytes, inFlightBytes)
	if total := o.Memory.Total(); total > 0 {
		bytes = min(bytes, total/inFlightShare)
	}
	return bytes
}

// Server accepts connections and serves them.
type Server struct {
	opts      Options
	log       *slog.Logger
	clock     clock.Clock
	codec     *wire.Codec
	listeners []net.Listener
	handler   Handler

	base      context.Context // of every operation
	interrupt context.CancelCauseFunc
	stopping  chan struct{}
	serving   sync.WaitGroup // connections
	counters  counters
	budget    *budget
	nextID    atomic.Int32 // of messages
	override  netrange.Set
	held      sync.Pool // of *[]byte: what is to be written over TLS at once

	mu struct {
		sync.Mutex // guards who is connected
		conns      map[int64]*Conn
		created    int64
		lent       int64 // of the numbers, those of connections that are not here
		stopped    bool
	}
}

// Listen opens the listeners. Clients can connect from now on, and wait until Serve.
func Listen(ctx context.Context, opts Options) (*Server, error) {
	codec, err := wire.NewCodec(opts.Compressors)
	if err != nil {
		return nil, err
	}
	if len(opts.Addresses)+len(opts.Sockets) == 0 {
		return nil, errors.New("there is no address to listen on")
	}
	listeners := []net.Listener{opts.Listener}
	if opts.Listener == nil {
		if listeners, err = ListenAll(ctx, opts.Addresses, opts.Port); err != nil {
			return nil, err
		}
	}
	if listeners, err = listenSockets(ctx, listeners, opts.Sockets, opts.Port, opts.Log); err != nil {
		return nil, err
	}
	s := &Server{
		opts: opts, log: opts.Log, clock: opts.Clock, codec: codec, listeners: listeners,
		stopping: make(chan struct{}), budget: newBudget(opts.inFlightBytes()), override: netrange.New(opts.Override),
	}
	opts.Memory.OnShortage(s.endUnread)
	s.base, s.interrupt = context.WithCancelCause(context.Background())
	s.mu.conns = map[int64]*Conn{}
	return s, nil
}

// NextID is a number for a connection that others keep, so that no two have the same.
func (s *Server) NextID() int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.mu.lent++
	return s.mu.created + s.mu.lent
}

// Addr is the first address the server listens on.
func (s *Server) Addr() net.Addr { return s.listeners[0].Addr() }

// Addrs are all of them.
func (s *Server) Addrs() []net.Addr {
	var out []net.Addr
	for _, l := range s.listeners {
		out = append(out, l.Addr())
	}
	return out
}

// Stopping is closed when the server begins to stop. Handlers that only wait (an awaited hello, a tailing getMore)
// should answer then; the context ends later, for those that work.
func (s *Server) Stopping() <-chan struct{} { return s.stopping }

// Close gives the listeners up. It is for a server that was never served; Serve does it on its own.
func (s *Server) Close() error {
	var errs []error
	for _, l := range s.listeners {
		if err := l.Close(); err != nil && !errors.Is(err, net.ErrClosed) {
			errs = append(errs, fmt.Errorf("close listener: %w", err))
		}
	}
	return errors.Join(errs...)
}

// Serve serves connections until ctx ends. Then it accepts no more, closes idle connections, lets running operations
// finish for the grace period, interrupts the rest and returns. It is called once.
//
// An error means that operations did not even end when interrupted: they still run, and what they use must stay open.
func (s *Server) Serve(ctx context.Context, h Handler) error {
	s.handler = h
	var accepting sync.WaitGroup
	for _, l := range s.listeners {
		accepting.Go(func() { s.accept(l) })
	}
	stopWatch := make(chan struct{})
	accepting.Go(func() { s.watchAll(stopWatch) })
	if s.opts.TLS != nil {
		accepting.Go(func() { s.opts.TLS.Certificates.Watch(ctx) })
	}

	<-ctx.Done()
	err := s.stop()
	close(stopWatch)
	accepting.Wait()
	return err
}

func (s *Server) accept(l net.Listener) {
	for {
		socket, err := l.Accept()
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if err != nil {
			s.log.Warn("Error accepting new connection on local endpoint", "error", err.Error())
			s.pause(acceptPause)
			continue
		}
		s.welcome(socket)
	}
}

func (s *Server) pause(d time.Duration) {
	timer := s.clock.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C():
	case <-s.stopping:
	}
}

// welcome starts serving socket, or closes it when there are too many or the server stops.
func (s *Server) welcome(socket net.Conn) {
	c := s.newConn(socket)
	s.mu.Lock()
	open := len(s.mu.conns)
	admitted := !s.mu.stopped && (open < s.opts.MaxConns || s.override.Has(socket))
	if admitted {
		s.mu.created++
		c.id = s.mu.created + s.mu.lent
		s.mu.conns[c.id] = c
		s.serving.Add(1)
	}
	s.mu.Unlock()

	if !admitted {
		s.counters.rejected.Add(1)
		c.socket.Close()
		s.log.Info("Connection refused because there are too many open connections",
			"remote", remote(socket), "connectionCount", open, "ctx", "listener")
		return
	}
	if !s.opts.Quiet {
		s.log.Info("Connection accepted", "remote", remote(socket), "connectionId", c.id, "connectionCount", open+1, "ctx", "listener")
	}
	s.handler.Connected(c)
	go s.serve(c)
}

func (s *Server) newConn(socket net.Conn) *Conn {
	c := &Conn{socket: socket, enabled: s.codec.Enabled(), reader: s.codec.NewReader(socket), writer: s.codec.NewWriter(socket)}
	c.memory.Open(s.opts.Memory, memory.Replies)
	c.transfer.counted.OpenExact(s.opts.Memory, memory.Requests)
	c.reader.Admit = func(size, arriving int) error { return s.admit(c, size, arriving) }
	if s.opts.MaxMessage != nil {
		c.reader.MaxSize = func() int { return s.opts.MaxMessage(c) }
	}
	c.ctx, c.cancel = context.WithCancelCause(s.base)
	return c
}

// dismiss forgets a connection that is no longer served.
func (s *Server) dismiss(c *Conn) {
	defer s.serving.Done()
	s.handler.Disconnected(c)
	s.handled(c)
	c.cancel(context.Canceled)
	c.close()
	s.mu.Lock()
	delete(s.mu.conns, c.id)
	open := len(s.mu.conns)
	s.mu.Unlock()
	if !s.opts.Quiet {
		s.log.Info("Connection ended", "remote", c.Remote(), "connectionId", c.id, "connectionCount", open, "ctx", fmt.Sprint("conn", c.id))
	}
}

func (s *Server) connections() []*Conn {
	s.mu.Lock()
	defer s.mu.Unlock()
	out := make([]*Conn, 0, len(s.mu.conns))
	for _, c := range s.mu.conns {
		out = append(out, c)
	}
	return out
}

func (s *Server) stop() error {
	err := s.Close()
	s.mu.Lock()
	s.mu.stopped = true
	s.mu.Unlock()
	close(s.stopping)
	// Whoever waits for a request is woken; whoever works looks at stopping before the next one.
	for _, c := range s.connections() {
		_ = c.socket.SetReadDeadline(passed)
	}
	ended := make(chan struct{})
	go func() {
		s.serving.Wait()
		close(ended)
	}()
	defer s.interrupt(context.Canceled)
	if s.within(grace, ended) {
		return err
	}
	s.interrupt(mongoerr.New(mongoerr.InterruptedAtShutdown, "interrupted at shutdown"))
	if s.within(lastCall, ended) {
		return err
	}
	for _, c := range s.connections() {
		_ = c.socket.SetWriteDeadline(passed)
	}
	if s.within(time.Second, ended) {
		return err
	}
	return errors.Join(err, fmt.Errorf("%d operations still run although they were interrupted", len(s.connections())))
}

// within tells whether ended closes before d has passed.
func (s *Server) within(d time.Duration, ended <-chan struct{}) bool {
	timer := s.clock.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ended:
		return true
	case <-timer.C():
		return false
	}
}
