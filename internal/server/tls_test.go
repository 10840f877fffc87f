package server

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"net"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/ebbdb/ebb/internal/bson"
	"github.com/ebbdb/ebb/internal/certificate"
	"github.com/ebbdb/ebb/internal/certificate/certtest"
	"github.com/ebbdb/ebb/internal/clock"
	"github.com/ebbdb/ebb/internal/mongoerr"
	"github.com/ebbdb/ebb/internal/serverlog"
	"github.com/ebbdb/ebb/internal/wire"
)

// house is what a test of TLS has: an authority, a server's certificate by it, and a client's.
type house struct {
	*certtest.Maker
	ca, server, ann *certtest.Identity
	files           certificate.Options
	mode            atomic.Int32
	log             lines
}

// lines is a log.
type lines struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *lines) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(b)
}

// has waits until the log has text.
func (l *lines) has(text string) {
	until(func() bool {
		l.mu.Lock()
		defer l.mu.Unlock()
		return strings.Contains(l.b.String(), text)
	})
}

func newHouse(t *testing.T) *house {
	t.Helper()
	h := &house{Maker: certtest.New(t, time.Now())}
	h.ca = h.Authority("the authority")
	h.server, h.ann = h.Issue(h.ca, "server", certtest.Local), h.Issue(h.ca, "ann")
	h.files = certificate.Options{KeyFile: h.Write("server.pem", h.server.PEM()), CAFile: h.Write("ca.pem", h.ca.CertPEM())}
	h.mode.Store(int32(RequireTLS))
	return h
}

// start starts a server that goes by h.
func (h *house) start(t *testing.T, handler Handler) *served {
	t.Helper()
	never := func() bool { return false }
	store, err := certificate.Open(h.files, clock.Wall(), serverlog.Discard().For("NETWORK"))
	if err != nil {
		t.Fatal(err)
	}
	tls := &TLS{Certificates: store, Mode: &h.mode, NoPlainLog: never, NoBareLog: never, WarnDays: func() int64 { return 30 }}
	return start(t, Options{TLS: tls, Log: serverlog.New(&h.log, 0).For("NETWORK")}, handler)
}

// client is what a client goes by that has these certificates.
func (h *house) client(own ...*certtest.Identity) *tls.Config {
	c := &tls.Config{RootCAs: certtest.Pool(h.ca), ServerName: "localhost"}
	for _, i := range own {
		c.Certificates = append(c.Certificates, i.TLS())
	}
	return c
}

// dialTLS connects, and fails the test where it cannot.
func (s *served) dialTLS(c *tls.Config) *client {
	s.t.Helper()
	conn, err := tls.Dial("tcp", s.Addr().String(), c)
	if err != nil {
		s.t.Fatal(err)
	}
	return newClient(s.t, conn)
}

// TestTLS has clients that come over TLS be like all others.
func TestTLS(t *testing.T) {
	h := newHouse(t)
	dial := func(s *served) *client { return s.dialTLS(h.client(h.ann)) }
	t.Run("operations are watched", func(t *testing.T) {
		w := newWaiter()
		watchLeavesTheConnectionWhole(t, w, h.start(t, w), dial)
	})
	t.Run("a hang-up ends the operation", func(t *testing.T) {
		for _, ahead := range []int{0, 10, len(message(2, `{ ping: 1 }`))} {
			w := newWaiter()
			s := h.start(t, w)
			c := dial(s)
			c.send(1, 0, `{ wait: 1 }`)
			<-w.began
			c.raw(message(2, `{ ping: 1 }`)[:ahead])
			c.Close()
			if cause := w.causeOf(s); !mongoerr.Is(cause, mongoerr.ClientDisconnect) {
				t.Errorf("the operation ended by %v", cause)
			}
		}
	})
	t.Run("large messages and replies", func(t *testing.T) {
		s := h.start(t, echo)
		c := dial(s)
		for _, size := range []int{10, 4000, 16_200, 16_300, 16_400, 40_000, 65_000, 300_000, 4 << 20} {
			body := bson.Build().Int32("ping", 1).Binary("pad", 0, bytes.Repeat([]byte{byte(size)}, size)).Doc()
			for _, with := range []wire.CompressorID{wire.Uncompressed, wire.Zlib} {
				if _, err := c.w.WriteMessage(wire.Outgoing{RequestID: 1, OpCode: wire.OpMsg, Compressor: with, Body: body}); err != nil {
					t.Fatal(err)
				}
				if _, reply := c.receive(); !bytes.Equal(reply.Lookup("body").Doc(), body) {
					t.Errorf("%d bytes came back of %d", len(reply), size)
				}
			}
		}
	})
	t.Run("who goes is told so", func(t *testing.T) {
		c := dial(h.start(t, handlerFunc(func(context.Context, *Conn, *Request) Reply { return Reply{Close: true} })))
		c.send(1, 0, `{ ping: 1 }`)
		if n, err := c.Read(make([]byte, 1)); n != 0 || !errors.Is(err, io.EOF) { // which package tls gives for nothing else
			t.Errorf("%d, %v", n, err)
		}
	})
	t.Run("stopping", func(t *testing.T) {
		s := h.start(t, echo)
		idle, mute := dial(s), dialTo(t, s.Addr().String()) // who begins no handshake
		idle.ask(`{ ping: 1 }`)
		half := dialTo(t, s.Addr().String())
		half.raw(hello(t)[:100])
		s.stop()
		<-s.ended
		if s.err != nil {
			t.Error(s.err)
		}
		mute.wantClosed()
		half.wantClosed()
	})
}

// hello is how a client begins a handshake.
func hello(t *testing.T) []byte {
	t.Helper()
	a, b := net.Pipe()
	defer a.Close()
	go func() {
		_ = tls.Client(b, &tls.Config{InsecureSkipVerify: true}).Handshake()
		b.Close()
	}()
	out := make([]byte, 5000)
	n, err := a.Read(out)
	if err != nil {
		t.Fatal(err)
	}
	return out[:n]
}

// TestModes: which of a client over TLS and a plain one each mode takes.
func TestModes(t *testing.T) {
	h := newHouse(t)
	s := h.start(t, echo)
	for _, m := range []struct {
		mode  Mode
		plain bool
	}{{AllowTLS, true}, {PreferTLS, true}, {RequireTLS, false}} {
		h.mode.Store(int32(m.mode))
		want(t, s.dialTLS(h.client(h.ann)).ask(`{ ping: 1 }`), `{ body: { ping: 1 }, ok: 1.0 }`)
		c := s.dial()
		if m.plain {
			want(t, c.ask(`{ ping: 1 }`), `{ body: { ping: 1 }, ok: 1.0 }`)
		} else {
			c.send(1, 0, `{ ping: 1 }`)
			c.wantClosed()
		}
		c = s.dial()
		c.raw([]byte("GET / HTTP/1.1\r\nHost: x\r\n\r\n"))
		if b, err := io.ReadAll(c); err != nil || string(b) != httpReply() {
			t.Errorf("a browser is told %q, %v", b, err)
		}
	}
	h.log.has("SSL mode is set to 'preferred' and connection to remote is not using SSL")
	h.log.has("The server is configured to only allow SSL connections")
	h.log.has("Ingress TLS handshake complete")

	var log lines
	plain := start(t, Options{Log: serverlog.New(&log, 0).For("NETWORK")}, echo)
	c := plain.dial()
	c.raw(hello(t))
	c.wantClosed()
	log.has("SSL handshake received but server is started without SSL support")
}

// TestPlainMessagesThatLookLikeTLS: a message of 22 bytes and some thousands begins with the bytes of a handshake.
func TestPlainMessagesThatLookLikeTLS(t *testing.T) {
	h := newHouse(t)
	h.mode.Store(int32(PreferTLS))
	s := h.start(t, echo)
	for _, size := range []int{0x0316, 0x010316} {
		pad := size - len(message(1, `{ a: "" }`))
		body := `{ a: "` + strings.Repeat("x", pad) + `" }`
		if m := message(1, body); m[0] != 0x16 || m[1] != 3 {
			t.Fatalf("% x", m[:4])
		}
		if got := s.dial().ask(body); got.Lookup("ok").Double() != 1 {
			t.Error(got)
		}
	}
}

// TestWhoIsRefused: clients that are not let in see their connection end, and the log says why.
func TestWhoIsRefused(t *testing.T) {
	h := newHouse(t)
	other := h.Authority("another authority")
	gone := h.Issue(h.ca, "gone")
	h.files.CRLFile = h.Write("crl.pem", h.Revoke(h.ca, time.Now().Add(-time.Hour), time.Now().Add(time.Hour), gone))
	s := h.start(t, echo)
	past := func(c *x509.Certificate) { c.NotAfter = time.Now().Add(-time.Minute) }
	for _, c := range []struct {
		what, want string
		config     *tls.Config
	}{
		{"no certificate", "no SSL certificate provided by peer; connection rejected", h.client()},
		{"another's", "SSL peer certificate validation failed: unable to get local issuer certificate", h.client(h.Issue(other, "ann"))},
		{"expired", "SSL peer certificate validation failed: certificate has expired", h.client(h.Issue(h.ca, "ann", past))},
		{"revoked", "SSL peer certificate validation failed: certificate revoked", h.client(gone)},
	} {
		for _, version := range []uint16{tls.VersionTLS12, tls.VersionTLS13} {
			c.config.MinVersion, c.config.MaxVersion = version, version
			// A client that is asked for a certificate of other authorities sends it all the same.
			if own := c.config.Certificates; len(own) > 0 {
				c.config.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return &own[0], nil }
			}
			h.log.mu.Lock()
			h.log.b.Reset()
			h.log.mu.Unlock()
			conn, err := tls.Dial("tcp", s.Addr().String(), c.config)
			if err == nil {
				_, err = conn.Read(make([]byte, 1))
				conn.Close()
			}
			if err == nil || !strings.Contains(err.Error(), "bad certificate") {
				t.Errorf("%s: %v", c.what, err)
			}
			h.log.has(c.want)
		}
	}
	want(t, s.dialTLS(h.client(h.ann)).ask(`{ ping: 1 }`), `{ body: { ping: 1 }, ok: 1.0 }`)

	old := h.client(h.ann)
	old.MinVersion, old.MaxVersion = tls.VersionTLS11, tls.VersionTLS11
	if _, err := tls.Dial("tcp", s.Addr().String(), old); err == nil || !strings.Contains(err.Error(), "protocol version") {
		t.Errorf("TLS 1.1: %v", err)
	}
	garbage := s.dial()
	garbage.raw(append([]byte{0x16, 3, 1, 0, 100, 1, 0, 0, 96}, bytes.Repeat([]byte("garbage"), 100)...))
	_, _ = io.ReadAll(garbage) // an alert
	want(t, s.dialTLS(h.client(h.ann)).ask(`{ ping: 1 }`), `{ body: { ping: 1 }, ok: 1.0 }`)

	h.files.MinVersion = tls.VersionTLS13
	s = h.start(t, echo)
	old.MinVersion, old.MaxVersion = tls.VersionTLS12, tls.VersionTLS12
	if _, err := tls.Dial("tcp", s.Addr().String(), old); err == nil || !strings.Contains(err.Error(), "protocol version") {
		t.Errorf("TLS 1.2 where it is disabled: %v", err)
	}
}

// TestMuteClients: who begins nothing, or half a handshake, is closed after a while, and holds up nobody meanwhile.
func TestMuteClients(t *testing.T) {
	h := newHouse(t)
	h.mode.Store(int32(PreferTLS))
	s := h.start(t, echo)
	mute, half, begun := s.dial(), s.dial(), s.dial()
	half.raw(hello(t)[:100])
	begun.raw(hello(t)[:5])
	plain, secure := s.dial(), s.dialTLS(h.client(h.ann))
	for _, c := range []*client{plain, secure} {
		want(t, c.ask(`{ ping: 1 }`), `{ body: { ping: 1 }, ok: 1.0 }`)
	}
	s.atRest()
	closed := make(chan struct{})
	go func() {
		defer close(closed)
		for _, c := range []*client{mute, half, begun} {
			c.wantClosed()
		}
	}()
	began := s.clock.Now()
	s.turnUntil(closed)
	if took := s.clock.Now().Sub(began); took < greetingTimeout {
		t.Errorf("they were closed after %s", took)
	}
	s.clock.Advance(2 * greetingTimeout)
	for _, c := range []*client{plain, secure} {
		want(t, c.ask(`{ ping: 1 }`), `{ body: { ping: 1 }, ok: 1.0 }`)
	}
}

// TestPeers: what a handler learns of a client by its certificate, on a session that is resumed too.
func TestPeers(t *testing.T) {
	h := newHouse(t)
	h.files.AllowNone = true
	who := handlerFunc(func(_ context.Context, c *Conn, _ *Request) Reply {
		b := bson.Build().Bool("secure", c.IsSecure())
		if p := c.Peer(); p != nil {
			b.String("subject", p.Subject)
		}
		return Reply{Body: b.Doc()}
	})
	h.mode.Store(int32(AllowTLS))
	s := h.start(t, who)
	want(t, s.dial().ask(`{ who: 1 }`), `{ secure: false }`)
	want(t, s.dialTLS(h.client()).ask(`{ who: 1 }`), `{ secure: true }`)
	for _, version := range []uint16{tls.VersionTLS12, tls.VersionTLS13} {
		config := h.client(h.ann)
		config.ClientSessionCache = tls.NewLRUClientSessionCache(1)
		config.MaxVersion = version
		for i := range 2 {
			c := s.dialTLS(config)
			want(t, c.ask(`{ who: 1 }`), `{ secure: true, subject: "CN=ann,OU=clients,O=Ebb" }`)
			if resumed := c.Conn.(*tls.Conn).ConnectionState().DidResume; resumed != (i == 1) {
				t.Errorf("TLS %s, connection %d: resumed is %v", certificate.VersionName(version), i, resumed)
			}
		}
	}
	if stats := s.Stats(); stats.TLS12 != 2 || stats.TLS13 != 3 {
		t.Errorf("%+v", stats)
	}
}

// TestRotationWhileServing: connections go on with what they have begun with, new ones get the new certificate, and no session that was
// begun by the old is resumed by it.
func TestRotationWhileServing(t *testing.T) {
	h := newHouse(t)
	s := h.start(t, echo)
	config := h.client(h.ann)
	config.ClientSessionCache = tls.NewLRUClientSessionCache(1)
	before := s.dialTLS(config)
	before.ask(`{ ping: 1 }`)
	serials := func(c *client) string {
		return c.Conn.(*tls.Conn).ConnectionState().PeerCertificates[0].SerialNumber.String()
	}
	next := h.Issue(h.ca, "server", certtest.Local)
	h.Write("server.pem", next.PEM())
	h.files.CRLFile = ""
	if err := s.opts.TLS.Certificates.Rotate(t.Context()); err != nil {
		t.Fatal(err)
	}
	want(t, before.ask(`{ ping: 2 }`), `{ body: { ping: 2 }, ok: 1.0 }`)
	after := s.dialTLS(config)
	want(t, after.ask(`{ ping: 1 }`), `{ body: { ping: 1 }, ok: 1.0 }`)
	if after.Conn.(*tls.Conn).ConnectionState().DidResume || serials(after) != next.Cert.SerialNumber.String() || serials(before) == serials(after) {
		t.Error("the new connection does not go by the new certificate")
	}
}

// writes counts what is written to a socket.
type writes struct {
	net.Conn
	sizes []int
}

func (w *writes) Write(b []byte) (int, error) {
	w.sizes = append(w.sizes, len(b))
	return len(b), nil
}

// TestOneWriteAReply: records that belong together leave together, up to what is held.
func TestOneWriteAReply(t *testing.T) {
	for _, c := range []struct {
		parts []int
		want  []int
	}{
		{[]int{100}, []int{100}},
		{[]int{16000, 16000, 20}, []int{32020}},
		{[]int{16406, 16406, 16406, 16406, 100}, []int{49218, 16506}},
	} {
		w := &writes{}
		var pool sync.Pool
		s := &secure{link: &link{Conn: w, pool: &pool}}
		s.hold(recordBytes)
		for _, n := range c.parts {
			if _, err := s.link.Write(make([]byte, n)); err != nil {
				t.Fatal(err)
			}
		}
		if err := s.let(nil); err != nil || !slices.Equal(w.sizes, c.want) || s.link.held != nil {
			t.Errorf("%v left as %v, %v", c.parts, w.sizes, err)
		}
		s.hold(10)
		_, _ = s.link.Write(make([]byte, 10))
		if last := w.sizes[len(w.sizes)-1]; last != 10 {
			t.Errorf("a small reply left as %d bytes", last)
		}
	}
}
