package ebb

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/ebbdb/ebb/internal/clock"
	"github.com/ebbdb/ebb/internal/command"
	"github.com/ebbdb/ebb/internal/config"
	"github.com/ebbdb/ebb/internal/console"
	"github.com/ebbdb/ebb/internal/mongoerr"
)

// errConsoleOpen is a console that strangers would reach.
var errConsoleOpen = errors.New("the console: on other addresses than this machine's own it needs Authorization and TLS")

// openConsole opens the console, if there is to be one. That it cannot be had is no reason for the server to end.
func (s *Server) openConsole() error {
	c := s.opts.Console
	if c == nil {
		return nil
	}
	addresses := c.Addresses
	if len(addresses) == 0 {
		addresses = config.Default().Net.Console.BindIP
	}
	local := isLocal(addresses)
	if !local && (!s.opts.Authorization || s.opts.TLS == nil) {
		return errConsoleOpen
	}
	o := console.Options{Addresses: addresses, Port: c.Port, Authorization: s.opts.Authorization, Version: Version, MongoVersion: MongoVersion,
		NextID: s.network.NextID, Memory: s.memory, Log: s.log.For("NETWORK"), Figures: s.figures(), Clock: clock.Wall()} // browsers live in real time
	if o.Port == AnyPort {
		o.Port = 0
	}
	if !local { // what does not leave the machine needs no TLS, and no certificate is for 127.0.0.1
		o.Certificates = s.transport.certificates
	}
	open, err := console.Listen(context.Background(), o)
	if err != nil {
		s.log.For("NETWORK").Warn("The console is not open", "port", c.Port, "error", err.Error())
		return nil
	}
	s.console = open
	return nil
}

// ConsoleURL is where browsers find the console, "" where there is none.
func (s *Server) ConsoleURL() string {
	if s.console == nil {
		return ""
	}
	return s.console.URL()
}

// serveConsole answers browsers until ctx ends.
func (s *Server) serveConsole(ctx context.Context) error {
	if s.console == nil {
		return nil
	}
	s.log.For("NETWORK").Info("The console is open", "url", s.console.URL())
	if err := s.console.Serve(ctx, browsers{s}); err != nil {
		return fmt.Errorf("stop the console: %w", err)
	}
	return nil
}

// browsers is the server as its console knows it (console.Commands): whichever database it has at the moment.
type browsers struct{ server *Server }

// enter is that database; nil where there is none, and none is waited for.
func (b browsers) enter(ctx context.Context) *database {
	if b.server.sharing == nil {
		return b.server.serving.Enter(ctx)
	}
	return b.server.serving.TryEnter()
}

// errElsewhere is for browsers at a server that hands requests on: what it would show is the other one's.
var errElsewhere = mongoerr.New(mongoerr.NotWritablePrimary, "this server hands requests on to another one that works on the data, whose console shows them")

func (b browsers) absent(ctx context.Context) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return errElsewhere
}

// ConnectOwn implements console.Commands.
func (b browsers) ConnectOwn(id int64, remote, local string) *command.Conn {
	d := b.enter(context.Background())
	if d == nil {
		return command.NewConn(id, remote, local)
	}
	defer d.Leave()
	return d.commands.ConnectOwn(id, remote, local)
}

// Disconnect implements console.Commands. One that has begun at another database was forgotten with it.
func (b browsers) Disconnect(c *command.Conn) {
	d := b.enter(context.Background())
	if d == nil {
		return
	}
	defer d.Leave()
	d.commands.Disconnect(c)
}

// Handle implements console.Commands.
func (b browsers) Handle(ctx context.Context, c *command.Conn, r command.Request) command.Reply {
	d := b.enter(ctx)
	if d == nil {
		return command.Reply{Body: mongoerr.Reply(b.absent(ctx))}
	}
	defer d.Leave()
	return d.commands.Handle(ctx, c, r)
}

// Now implements console.Commands.
func (b browsers) Now() time.Time {
	d := b.server.serving.TryEnter()
	if d == nil {
		return b.server.clock.Now()
	}
	defer d.Leave()
	return d.clock.Now()
}

// MaxUnknown implements console.Commands.
func (b browsers) MaxUnknown() int64 { return b.server.transport.params.MaxUnknown.Get() }

// LogIn implements console.Commands.
func (b browsers) LogIn(ctx context.Context, c *command.Conn, db, user, password string) error {
	d := b.enter(ctx)
	if d == nil {
		return b.absent(ctx)
	}
	defer d.Leave()
	return d.commands.LogIn(ctx, c, db, user, password)
}
