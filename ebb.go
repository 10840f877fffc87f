// Package ebb is a MongoDB-compatible document database, made to be embedded: Open builds a server out of Options, Serve
// answers clients, Close ends it. It is the only place that wires the parts together, and knows nothing of how they work.
package ebb

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync"
	"sync/atomic"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/ebbdb/ebb/internal/clock"
	"github.com/ebbdb/ebb/internal/console"
	"github.com/ebbdb/ebb/internal/dbpath"
	"github.com/ebbdb/ebb/internal/establishment"
	"github.com/ebbdb/ebb/internal/handover"
	"github.com/ebbdb/ebb/internal/host"
	"github.com/ebbdb/ebb/internal/kv/diskwatch"
	"github.com/ebbdb/ebb/internal/member"
	"github.com/ebbdb/ebb/internal/memory"
	"github.com/ebbdb/ebb/internal/metrics"
	"github.com/ebbdb/ebb/internal/server"
	"github.com/ebbdb/ebb/internal/serverlog"
)

// Server is one open server.
type Server struct {
	opts    Options
	log     *serverlog.Log
	clock   clock.Clock
	dir     *dbpath.Dir // nil in memory
	network *server.Server
	console *console.Server // nil: there is none
	metrics *metrics.Door   // nil: figures are told nowhere
	// transport is what connections go by.
	transport *transport
	memory    *memory.Governor
	closing   sync.Once
	closed    error // what Close returned
	// asked is closed by the shutdown command.
	asked   chan struct{}
	askOnce sync.Once
	served  atomic.Bool // Serve was called
	failed  failed
	// foundation is what stays while the server is open, and serving what stands on it now.
	foundation *foundation
	serving    handover.Holder[*database]
	// group is the server's replica set; nil: it stands alone. memoryFiles are where its data is then, in memory.
	group       *member.Group
	memoryFiles *vfs.MemFS
	watch       *diskwatch.Watch // of the disk that the data are on
	// establishment limits how many connections begin a second.
	establishment *establishment.Limiter
	// sharing is its part in a keyspace that it shares with other servers; nil: it shares none.
	sharing *sharing
}

// Open builds a server. It listens already when Open returns, and answers from Serve on.
//
// What can go wrong goes wrong before the data is touched: the port first (an error that is syscall.EADDRINUSE, say), then the
// directory (ErrInUse, ErrDamaged). Nothing is left open then.
func Open(opts Options) (*Server, error) {
	s, err := open(opts)
	if err != nil {
		return nil, withNames(err)
	}
	return s, nil
}

func open(opts Options) (*Server, error) {
	opts = opts.withDefaults()
	if err := opts.check(); err != nil {
		return nil, err
	}
	s := &Server{opts: opts, log: serverlog.Of(opts.Log), clock: clockOf(opts.Clock), asked: make(chan struct{}), failed: failed{noted: make(chan struct{})}}
	s.watch = diskwatch.New(clock.Wall(), s.log.For("STORAGE"))
	s.memory = memory.New(opts.MemoryBytes, clock.Wall(), s.log.For("CONTROL")) // waits are of real clients
	var err error
	if s.transport, err = openTransport(opts.TLS, opts.clusterAuth(), s.log.For("NETWORK")); err != nil {
		return nil, err
	}
	addresses, sockets := opts.listensOn()
	s.establishment = establishment.New(clock.Wall())
	network, err := server.Listen(context.Background(), server.Options{
		Addresses: addresses, Listener: opts.listener(), Sockets: sockets, TLS: s.transport.tls(), Port: opts.Port, MaxConns: opts.MaxConns, Override: opts.ConnsOverride, Establishment: s.establishment, MaxMessage: s.maxMessage, Compressors: opts.Compressors,
		Quiet: opts.Quiet, Log: s.log.For("NETWORK"),
		Clock:  clock.Wall(), // sockets live in real time
		Memory: s.memory,
	})
	if err != nil {
		return nil, err
	}
	s.network = network
	if s.metrics, err = openMetrics(s); err != nil {
		return nil, errors.Join(err, s.Close())
	}
	if opts.Engine != InMemory && opts.Engine != TiKV {
		if s.dir, err = dbpath.Claim(opts.DBPath); err != nil {
			return nil, errors.Join(err, s.Close())
		}
		if s.dir.Unclean() {
			s.log.For("STORAGE").Warn("Detected unclean shutdown - lock file is not empty", "dbpath", s.dir.Path())
		}
	}
	if err = s.openAll(); err != nil {
		return nil, errors.Join(err, s.Close())
	}
	if err := s.openConsole(); err != nil {
		return nil, errors.Join(err, s.Close())
	}
	s.tellMetrics()
	s.warnOfSurroundings(host.Look())
	if s.transport.certificates != nil {
		s.transport.certificates.WarnOfEnd(s.log.Startup())
	}
	return s, nil
}

// Addr is the address that clients connect to, the first where there are several.
func (s *Server) Addr() string { return s.network.Addr().String() }

// DBPath is the directory of the data, absolute, or "" in memory.
func (s *Server) DBPath() string {
	if s.dir == nil {
		return ""
	}
	return s.dir.Path()
}

// Serve answers clients until ctx ends, a client sends shutdown, or the store fails (ErrStoreFailed); then it lets running operations finish,
// interrupts them after ten seconds, and returns. Close comes after it. It is called once; later calls are an error.
func (s *Server) Serve(ctx context.Context) error {
	if s.served.Swap(true) {
		return errors.New("the server has been served: Open makes another")
	}
	var addresses []string
	for _, a := range s.network.Addrs() {
		addresses = append(addresses, a.String())
	}
	// Programs that start servers, as mongodb-runner does, wait for this line of the listener and read the port from it.
	ssl := "on"
	if s.transport.certificates == nil {
		ssl = "off"
	}
	s.log.For("NETWORK").Info("Waiting for connections", "ctx", "listener", "port", s.port(), "ssl", ssl,
		"address", addresses[0], "addresses", addresses, "dbpath", s.DBPath(), "storageEngine", s.opts.Engine, "version", Version, "mongoVersion", MongoVersion, "pid", os.Getpid())
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	go func() {
		select {
		case <-s.asked:
			stop()
		case <-s.failed.noted:
			stop()
		case <-ctx.Done():
		}
	}()
	browsers := make(chan error, 1)
	go func() { browsers <- s.serveConsole(ctx) }()
	serving, end := context.WithCancel(context.Background())
	defer end()
	go func() {
		<-ctx.Done()
		if s.group != nil && s.Err() == nil {
			s.group.HandOver(serving)
		}
		end()
	}()
	err := s.network.Serve(serving, s)
	stop()
	if err != nil {
		err = fmt.Errorf("stop the server: %w", err)
		if stalled := s.watch.Stalled(); stalled >= hangTime {
			s.tellHung(stalled)
			err = fmt.Errorf("%w: %w", ErrDiskHangs, err)
		}
	}
	return errors.Join(s.Err(), err, <-browsers)
}

// SweepNow deletes what has expired by now, as a pass of the TTL monitor does, and returns when it is done. It does nothing
// while ttlMonitorEnabled is false, or after fsync with lock.
func (s *Server) SweepNow(ctx context.Context) error {
	d := s.serving.Enter(ctx)
	if d == nil {
		return context.Cause(ctx)
	}
	defer d.Leave()
	return d.monitor.RunPass(ctx)
}

// Settle waits until the TTL monitor has done all that was due by now, and sleeps. With a Clock that is turned by hand, all
// that should have happened by then has happened.
func (s *Server) Settle(ctx context.Context) error {
	d := s.serving.Enter(ctx)
	if d == nil {
		return context.Cause(ctx)
	}
	defer d.Leave()
	if d.role.Kind == member.Follower {
		return nil // nothing happens by itself
	}
	return d.monitor.Settle(ctx)
}

// Close closes the data and gives the directory up. After an error of Serve it must not be called: operations still use
// the data, which is safe against the end of the process. Where the disk hangs for ten seconds it returns ErrDiskHangs. Later calls return what the
// first did.
func (s *Server) Close() error {
	s.closing.Do(func() { s.closed = s.closeUnlessHung() })
	return s.closed
}

func (s *Server) close() error {
	err := s.network.Close()
	if s.console != nil {
		err = errors.Join(err, s.console.Close())
	}
	if s.metrics != nil {
		err = errors.Join(err, s.metrics.Close())
	}
	s.memory.Close()
	if s.sharing != nil {
		s.sharing.close()
	}
	if s.group != nil {
		s.group.Stop()
	}
	d := s.serving.Current()
	if d != nil {
		err = errors.Join(err, d.close())
		if d.audit != nil {
			d.commands.TellShutdown()
		}
	}
	err = errors.Join(err, s.foundation.close())
	if s.group != nil {
		err = errors.Join(err, s.group.Close())
	}
	switch {
	case s.dir == nil:
	case d == nil:
		err = errors.Join(err, s.dir.Abandon())
	default:
		err = errors.Join(err, s.dir.Release())
	}
	s.watch.Close()
	return err
}
