package server

import (
	"crypto/tls"
	"encoding/binary"
	"io"
	"net"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/ebbdb/ebb/internal/certificate"
	"github.com/ebbdb/ebb/internal/clock"
)

const (
	// greetingTimeout is how long a client may take to begin, and to get over with its handshake, where the server speaks TLS.
	greetingTimeout = 30 * time.Second
	// slowHandshake is how long a handshake takes that counts as slow.
	slowHandshake = time.Second
	// recordBytes is what a record of TLS holds, headBytes more than what stands before a reply's document; heldBytes is how much of a
	// large reply is written at once.
	recordBytes = 16 << 10
	headBytes   = 64
	heldBytes   = 64 << 10
	// greetingBytes are what tells a client that begins with TLS from one that does not: a message's header.
	greetingBytes = 16
)

// Mode says which connections are those over TLS.
type Mode int32

// AllowTLS and PreferTLS take both kinds, which matters to connections to other servers alone; RequireTLS takes no plain ones.
const (
	AllowTLS Mode = iota + 1
	PreferTLS
	RequireTLS
)

// TLS is what a server has that speaks it.
type TLS struct {
	Certificates *certificate.Store
	// Mode may change while the server runs.
	Mode *atomic.Int32
	// Logged are the versions of the protocol whose use is logged.
	Logged []uint16
	// NoPlainLog leaves connections without TLS out of the log, NoBareLog those without a certificate.
	NoPlainLog, NoBareLog func() bool
	// WarnDays is how many days a client's certificate must be good for still, for nothing to be logged.
	WarnDays func() int64
}

func (t *TLS) mode() Mode { return Mode(t.Mode.Load()) }

// secure is a connection over TLS. A nil one is none, and does nothing.
type secure struct {
	*tls.Conn
	link *link
	peer *certificate.Peer
	// asked is the name by which the client has asked for the server; "" for none.
	asked string
	// cut says that a write has failed: nothing more is to be said to the client.
	cut bool
}

// hold has what is written go out together, where a reply of size bytes takes more than a record.
func (s *secure) hold(size int) {
	if s != nil {
		s.link.holding = size > recordBytes-headBytes
	}
}

// let writes what is held. err is how writing has ended so far.
func (s *secure) let(err error) error {
	if s == nil {
		return err
	}
	if err == nil {
		err = s.link.flush()
	}
	s.link.drop()
	s.cut = s.cut || err != nil
	return err
}

// link is the socket under a connection over TLS: what was read before it was known for one is read first, and what belongs together is
// written together.
type link struct {
	net.Conn
	ahead []byte
	// held is what waits to be written, in a buffer of pool's; nil for nothing.
	holding bool
	held    *[]byte
	pool    *sync.Pool
}

func (l *link) Read(b []byte) (int, error) {
	if len(l.ahead) == 0 {
		return l.Conn.Read(b)
	}
	n := copy(b, l.ahead)
	if l.ahead = l.ahead[n:]; len(l.ahead) == 0 {
		l.ahead = nil
	}
	return n, nil
}

func (l *link) Write(b []byte) (int, error) {
	if !l.holding {
		return l.Conn.Write(b)
	}
	if l.held == nil {
		l.held, _ = l.pool.Get().(*[]byte)
	}
	if l.held == nil {
		l.held = new([]byte)
		*l.held = make([]byte, 0, heldBytes)
	}
	if len(*l.held)+len(b) > heldBytes {
		if err := l.flush(); err != nil {
			return 0, err
		}
	}
	*l.held = append(*l.held, b...)
	return len(b), nil
}

func (l *link) flush() error {
	if l.held == nil || len(*l.held) == 0 {
		return nil
	}
	_, err := l.Conn.Write(*l.held)
	*l.held = (*l.held)[:0]
	return err
}

// drop holds nothing any more, and gives the buffer back.
func (l *link) drop() {
	l.holding = false
	if l.held != nil {
		*l.held = (*l.held)[:0]
		l.pool.Put(l.held)
		l.held = nil
	}
}

// stream is what the client's bytes go by.
func (c *Conn) stream() io.ReadWriter {
	if c.secure != nil {
		return c.secure
	}
	return c.socket
}

// close ends the connection; a client over TLS that still listens is told that this is the end, and no attack.
func (c *Conn) close() {
	if c.secure != nil && !c.secure.cut && !c.transfer.ended.Load() {
		_ = c.secure.Close()
	}
	c.socket.Close()
}

// greet finds out by its first bytes whether the client wants TLS, and says whether it may go on.
func (s *Server) greet(c *Conn) (goesOn bool) {
	if s.opts.TLS != nil {
		c.greeting.Store(s.clock.Now().UnixNano())
		defer c.greeting.Store(0)
	}
	first, err := c.reader.Peek(greetingBytes)
	switch {
	case err != nil:
		s.logReadError(c, err)
		return false
	case beginsTLS(first) && s.opts.TLS == nil:
		s.logRefused(c, "SSL handshake received but server is started without SSL support")
		return false
	case beginsTLS(first):
		return s.shakeHands(c)
	case s.opts.TLS == nil, string(first[:4]) == "GET ":
		return true
	}
	switch s.opts.TLS.mode() {
	case RequireTLS:
		s.logRefused(c, "The server is configured to only allow SSL connections")
		return false
	case PreferTLS:
		if !s.opts.TLS.NoPlainLog() {
			s.log.Info("SSL mode is set to 'preferred' and connection to remote is not using SSL", "connectionId", c.id, "remote", c.Remote())
		}
	}
	return true
}

// beginsTLS says whether a client begins with a handshake. A message has in its place for the one that it answers no other number than 0
// and -1, and a handshake no such.
func beginsTLS(first []byte) bool {
	answers := int32(binary.LittleEndian.Uint32(first[8:]))
	return first[0] == 0x16 && first[1] == 3 && answers != 0 && answers != -1
}

// shakeHands begins TLS.
func (s *Server) shakeHands(c *Conn) bool {
	t, began := s.opts.TLS, clock.Monotonic(s.clock)
	set := t.Certificates.Set()
	l := &link{Conn: c.socket, pool: &s.held}
	sec := &secure{Conn: tls.Server(l, set.Config), link: l}
	l.ahead = c.reader.Switch(sec)
	c.writer.Switch(sec)
	if err := sec.HandshakeContext(c.ctx); err != nil {
		s.logRefused(c, err.Error())
		return false
	}
	state := sec.ConnectionState()
	took := clock.Monotonic(s.clock) - began
	s.countHandshake(state.Version, took)
	var err error
	if sec.peer, err = set.Peer(state); err != nil {
		s.log.Warn("A client's certificate is not valid, and says nothing of who it is", "reason", err.Error(), "remote", c.Remote())
	}
	sec.asked = state.ServerName
	c.secure = sec
	s.logHandshake(c, state, took)
	return true
}

func (s *Server) countHandshake(version uint16, took time.Duration) {
	switch version {
	case tls.VersionTLS12:
		s.counters.tls12.Add(1)
	default:
		s.counters.tls13.Add(1)
	}
	if took >= slowHandshake {
		s.counters.slowTLS.Add(1)
	}
}

func (s *Server) logHandshake(c *Conn, state tls.ConnectionState, took time.Duration) {
	t := s.opts.TLS
	if !s.opts.Quiet {
		s.log.Info("Ingress TLS handshake complete", "connectionId", c.id, "durationMillis", took.Milliseconds())
	}
	if slices.Contains(t.Logged, state.Version) {
		s.log.Info("Accepted connection with TLS", "tlsVersion", certificate.VersionName(state.Version), "remote", c.Remote())
	}
	switch p := c.Peer(); {
	case p != nil && p.EndsSoon(s.clock.Now(), time.Duration(t.WarnDays())*24*time.Hour):
		s.log.Warn("Peer certificate expires soon", "peerSubjectName", p.Subject, "notAfter", p.NotAfter.UTC().Format(time.RFC3339))
	case len(state.PeerCertificates) == 0 && !t.NoBareLog():
		s.log.Warn("No SSL certificate provided by peer", "remote", c.Remote())
	}
}

// logRefused tells of a connection that never was one.
func (s *Server) logRefused(c *Conn, why string) {
	s.log.Info("Error receiving request from client. Ending connection from remote", "error", "SSLHandshakeFailed: "+why,
		"remote", c.Remote(), "connectionId", c.id)
}
