// Package console is the door for browsers: it serves the console's files, and runs the database commands that they send. It must not
// know what a command does, nor what the console shows.
//
// # What a request has to get past
//
// The console speaks to browsers, and a browser runs the programs of whoever it visits. So that none of those uses the console's
// rights, a request passes these, in this order (guard.go):
//
//  1. its Host names this machine by an address or by a name that the operator has given, so that no foreign name leads here (DNS
//     rebinding);
//  2. a request of the interface has the header X-Ebb-Console, which no foreign page can set without being asked for leave, and no
//     such leave is given; and where the browser says from which site it comes, that is the console's own;
//  3. one that changes anything has an Origin, which is the console's own, and is JSON;
//  4. it has the cookie of a session, which no script can read and no foreign site can have sent along, and with it, in a header, the
//     token of that session, which the console has got as an answer and keeps in its page alone (CSRF).
//
// What is done then is a command of a database, as a driver sends it, run as the user who has logged in, or as nobody. Rights are those
// of the table of commands: there is no second way in.
//
// Invariants: every request that is running is waited for by Close. A Session is used by many requests at once; each has a connection
// of its own for the commands, which ends with it.
package console

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"sync"
	"time"

	"github.com/ebbdb/ebb/internal/certificate"
	"github.com/ebbdb/ebb/internal/clock"
	"github.com/ebbdb/ebb/internal/command"
	"github.com/ebbdb/ebb/internal/memory"
	"github.com/ebbdb/ebb/internal/mongoerr"
	"github.com/ebbdb/ebb/internal/server"
)

// Limits of what browsers may ask for.
const (
	// maxConns is how many connections may be open at a time on one address; see server.Crowd.
	maxConns = 128
	// maxRunning is how many requests may run at a time, maxUnknown how many more of those who would have to log in first, and maxRunningEach how
	// many of one session.
	maxRunning, maxUnknown, maxRunningEach = 64, 16, 8
	// maxHeaderBytes bounds a request's headers, maxLoginBytes and maxCommandBytes its body.
	maxHeaderBytes, maxLoginBytes, maxCommandBytes = 16 << 10, 16 << 10, 16 << 20
	// headerPatience and bodyPatience are how long a browser may take to send them, replyPatience to read a reply.
	headerPatience, bodyPatience, replyPatience = 10 * time.Second, 2 * time.Minute, 2 * time.Minute
	// unknownPatience is bodyPatience for who would have to log in first: what is sent then is little.
	unknownPatience = 10 * time.Second
	// idle is how long a connection may be open between requests.
	idle = 2 * time.Minute
	// grace is how long commands may go on once the server was told to stop; then they are interrupted, and have lastCall to end.
	grace, lastCall = 10 * time.Second, 5 * time.Second
)

// Commands runs them; it is a command.Server.
type Commands interface {
	ConnectOwn(id int64, remote, local string) *command.Conn
	Disconnect(*command.Conn)
	Handle(context.Context, *command.Conn, command.Request) command.Reply
	LogIn(ctx context.Context, conn *command.Conn, db, user, password string) error
	// Now is the time of the database, which may be another than that of browsers.
	Now() time.Time
	// MaxUnknown is how many bytes a request may have of somebody who has not logged in, where that is needed.
	MaxUnknown() int64
}

// Options say where a console is, and what is behind it.
type Options struct {
	// Addresses are IP addresses or host names to listen on, with Port; 0 is any free one.
	Addresses []string
	Port      int
	// Certificates has browsers speak TLS; nil: they do not.
	Certificates *certificate.Store
	// Authorization says that who has not logged in may do nothing.
	Authorization bool
	// Version is Ebb's, MongoVersion that of the MongoDB it speaks as.
	Version, MongoVersion string
	// NextID numbers the connections of commands, beside those of drivers.
	NextID func() int64
	// Memory is what replies take theirs from; nil: they take what they like.
	Memory *memory.Governor
	Log    *slog.Logger
	// Figures answers for /metrics and /health; nil: nobody does.
	Figures http.Handler
	// Clock is for sessions and browsers, which live in real time.
	Clock clock.Clock
}

// Server is a console.
type Server struct {
	opts      Options
	names     []string // by which a request may call the server, beside addresses
	commands  Commands
	listeners []net.Listener
	http      *http.Server
	assets    *assets
	sessions  *sessions
	// running and unknown are the places of requests that run, see maxRunning.
	running, unknown chan struct{}

	base      context.Context // of every command
	interrupt context.CancelCauseFunc
	serving   sync.WaitGroup
}

// Listen opens the listeners. Browsers can connect from now on, and wait until Serve.
func Listen(ctx context.Context, o Options) (*Server, error) {
	assets, err := readAssets()
	if err != nil {
		return nil, err
	}
	s := &Server{opts: o, names: ownNames(o.Addresses), assets: assets, sessions: newSessions(o.Clock), running: make(chan struct{}, maxRunning), unknown: make(chan struct{}, maxUnknown)}
	if s.listeners, err = server.ListenAll(ctx, o.Addresses, o.Port); err != nil {
		return nil, err
	}
	if len(s.listeners) == 0 {
		return nil, errors.New("there is no address to listen on")
	}
	s.base, s.interrupt = context.WithCancelCause(context.Background())
	s.http = &http.Server{
		Handler: s, ReadHeaderTimeout: headerPatience, IdleTimeout: idle, MaxHeaderBytes: maxHeaderBytes,
		ConnState: server.NoteState, ErrorLog: slog.NewLogLogger(o.Log.Handler(), slog.LevelDebug),
	}
	if o.Certificates != nil {
		s.http.TLSConfig = &tls.Config{GetConfigForClient: s.transport}
	}
	return s, nil
}

// transport is what is in force now; a handshake that has begun keeps to it.
func (s *Server) transport(*tls.ClientHelloInfo) (*tls.Config, error) {
	c := s.opts.Certificates.Set().Config.Clone()
	c.NextProtos = []string{"h2", "http/1.1"}
	return c, nil
}

// Addr is the first address that the console listens on.
func (s *Server) Addr() string { return s.listeners[0].Addr().String() }

// URL is where a browser finds it.
func (s *Server) URL() string {
	if s.opts.Certificates != nil {
		return "https://" + s.Addr() + "/"
	}
	return "http://" + s.Addr() + "/"
}

// Serve answers browsers until ctx ends. Then it accepts no more, lets the commands that run finish for the grace period, interrupts the
// rest and returns. It is called once. An error means that commands did not even end when interrupted: what they use must stay open.
func (s *Server) Serve(ctx context.Context, c Commands) error {
	s.commands = c
	var accepting sync.WaitGroup
	for _, l := range s.listeners {
		l = server.NewCrowd(l, maxConns)
		accepting.Go(func() {
			if s.opts.Certificates != nil {
				_ = s.http.ServeTLS(l, "", "") // always ErrServerClosed, or the listener's end
			} else {
				_ = s.http.Serve(l)
			}
		})
	}
	<-ctx.Done()
	err := s.stop()
	accepting.Wait()
	return err
}

func (s *Server) stop() error {
	defer s.interrupt(context.Canceled)
	err := s.shutdown(grace)
	if err == nil {
		return nil
	}
	s.interrupt(mongoerr.New(mongoerr.InterruptedAtShutdown, "interrupted at shutdown"))
	if err = s.shutdown(lastCall); err == nil {
		return nil
	}
	return errors.Join(fmt.Errorf("commands of the console still run although they were interrupted: %w", err), s.http.Close())
}

func (s *Server) shutdown(patience time.Duration) error {
	ctx, cancel := clock.WithTimeout(context.Background(), s.opts.Clock, patience)
	defer cancel()
	return s.http.Shutdown(ctx)
}

// Close gives the listeners up. It is for a console that was never served; Serve does it on its own.
func (s *Server) Close() error {
	var errs []error
	for _, l := range s.listeners {
		if err := l.Close(); err != nil && !errors.Is(err, net.ErrClosed) {
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}
