package server

import (
	"context"
	"errors"
	"io"
	"net"
	"path/filepath"
	"runtime"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/ebbdb/ebb/internal/bson"
	"github.com/ebbdb/ebb/internal/clock"
	"github.com/ebbdb/ebb/internal/establishment"
	"github.com/ebbdb/ebb/internal/mongoerr"
	"github.com/ebbdb/ebb/internal/parameter"
	"github.com/ebbdb/ebb/internal/serverlog"
	"github.com/ebbdb/ebb/internal/wire"
)

// waiter is a handler whose "wait" runs until its context ends, whose "block" runs until released, and which answers
// all else at once.
type waiter struct {
	began chan struct{}
	cause chan error
	free  chan struct{}
	// lasts is whether Lasting went on when the last context ended.
	lasts atomic.Bool
}

func newWaiter() *waiter {
	return &waiter{began: make(chan struct{}, 100), cause: make(chan error, 100), free: make(chan struct{})}
}

func (w *waiter) Handle(ctx context.Context, _ *Conn, r *Request) Reply {
	switch r.Body.FirstKey() {
	case "wait":
		w.began <- struct{}{}
		select {
		case <-ctx.Done():
			w.lasts.Store(r.Lasting.Err() == nil)
			w.cause <- context.Cause(ctx)
			return Reply{Body: mongoerr.Reply(context.Cause(ctx))}
		case <-w.free:
			w.cause <- nil
		}
	case "block":
		w.began <- struct{}{}
		<-w.free
	}
	return okReply()
}

func (*waiter) Connected(*Conn)    {}
func (*waiter) Disconnected(*Conn) {}

// causeOf turns the clock until an operation that waits has ended, and says why it did.
func (w *waiter) causeOf(s *served) error {
	done := make(chan struct{})
	var cause error
	go func() {
		cause = <-w.cause
		close(done)
	}()
	s.turnUntil(done)
	return cause
}

func TestHangUpEndsTheOperation(t *testing.T) {
	next := message(2, `{ ping: 1 }`)
	for name, leave := range map[string]func(*client){
		"closes":                         func(c *client) { c.Close() },
		"closes its side":                func(c *client) { _ = c.Conn.(*net.TCPConn).CloseWrite() },
		"resets":                         func(c *client) { _ = c.Conn.(*net.TCPConn).SetLinger(0); c.Close() },
		"closes with bytes ahead":        func(c *client) { c.raw([]byte("more")); c.Close() },
		"closes with a message ahead":    func(c *client) { c.raw(next); c.Close() },
		"closes with many pieces ahead":  func(c *client) { leaveInPieces(c, next) },
		"closes behind a large question": func(c *client) { c.Close() },
	} {
		t.Run(name, func(t *testing.T) {
			w := newWaiter()
			s := start(t, Options{}, w)
			c, other := s.dial(), s.dial()
			pad := 0
			if strings.Contains(name, "large") {
				pad = 4000 // so that it fills the buffer
			}
			c.raw(frame(wire.OpMsg, 1, append([]byte{0, 0, 0, 0, 0}, bson.Build().Int32("wait", 1).Binary("pad", 0, make([]byte, pad)).Doc()...)))
			<-w.began
			leave(c)
			if cause := w.causeOf(s); !mongoerr.Is(cause, mongoerr.ClientDisconnect) {
				t.Errorf("the operation ended by %v", cause)
			}
			if !w.lasts.Load() {
				t.Error("what lasts has ended with the client")
			}
			want(t, other.ask(`{ ping: 1 }`), `{ ok: 1.0 }`)
		})
	}
}

// leaveInPieces sends a message byte by byte and closes.
func leaveInPieces(c *client, message []byte) {
	for i := range message {
		c.raw(message[i : i+1])
	}
	c.Close()
}

// message is an OP_MSG.
func message(id int32, body string) []byte {
	return frame(wire.OpMsg, id, append([]byte{0, 0, 0, 0, 0}, bson.MustDoc(body)...))
}

// TestWatchLeavesTheConnectionWhole has operations watched while messages of all sizes arrive, in pieces too, and answers all.
func TestWatchLeavesTheConnectionWhole(t *testing.T) {
	w := newWaiter()
	watchLeavesTheConnectionWhole(t, w, start(t, Options{}, w), (*served).dial)
}

func watchLeavesTheConnectionWhole(t *testing.T, w *waiter, s *served, dial func(*served) *client) {
	t.Helper()
	c := dial(s)
	watch := func() {
		for range 5 {
			s.waiting(1)
			s.clock.Advance(watchInterval)
		}
	}
	for round, size := range []int{0, 10, 3000, 4000, 5000, 100_000, 400_000} {
		body := bson.Build().Int32("block", 1).Binary("pad", 0, make([]byte, size*(round%2))).Doc()
		c.raw(frame(wire.OpMsg, 1, append([]byte{0, 0, 0, 0, 0}, body...)))
		<-w.began
		if round != 2 { // where it is, bytes arrive before anybody reads on
			watch()
		}
		var ahead []byte
		const n = 5
		for id := range int32(n) {
			body := bson.Build().Int32("ping", 1).Binary("pad", 0, make([]byte, size)).Doc()
			ahead = append(ahead, frame(wire.OpMsg, 2+id, append([]byte{0, 0, 0, 0, 0}, body...))...)
		}
		sent := make(chan struct{})
		go func() {
			defer close(sent)
			for len(ahead) > 0 {
				piece := min(len(ahead), 1+len(ahead)/3)
				if _, err := c.Write(ahead[:piece]); err != nil {
					t.Error(err)
					return
				}
				ahead = ahead[piece:]
			}
		}()
		watch()
		w.free <- struct{}{}
		for id := range int32(n + 1) {
			if m, _ := c.receive(); m.ResponseTo != 1+id {
				t.Errorf("size %d: an answer to %d, not to %d", size, m.ResponseTo, 1+id)
			}
		}
		<-sent
	}
}

// TestQuickOperationsAreNotWatched: whoever is through before the second look pays nothing.
func TestQuickOperationsAreNotWatched(t *testing.T) {
	w := newWaiter()
	s := start(t, Options{}, w)
	c := s.dial()
	for range 10 {
		c.send(1, 0, `{ block: 1 }`)
		<-w.began
		s.waiting(1)
		s.clock.Advance(watchInterval) // one look
		s.waiting(1)
		w.free <- struct{}{}
		c.receive()
	}
	if ended := s.connections()[0].watch.ended; ended != nil {
		t.Error("somebody read ahead")
	}
}

// TestHangUpBehindAMessage has clients leave in the moment they have sent something. The server does not read on to see.
func TestHangUpBehindAMessage(t *testing.T) {
	s := start(t, Options{MaxConns: 1000}, echo)
	ping := message(1, `{ ping: 1 }`)
	for i := range 300 {
		c := s.dial()
		if i%3 > 0 {
			want(t, c.ask(`{ ping: 1 }`), `{ body: { ping: 1 }, ok: 1.0 }`)
		}
		c.raw(ping)
		if i%2 > 0 {
			_ = c.Conn.(*net.TCPConn).CloseWrite()
		} else {
			c.Close()
		}
	}
	until(func() bool { return s.Stats().Requests == 500 })
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		until(func() bool { return s.Stats().Current == 0 })
	}()
	s.turnUntil(ended)
}

func TestUnacknowledgedOutlivesItsClient(t *testing.T) {
	w := newWaiter()
	s := start(t, Options{}, w)
	c := s.dial()
	c.send(1, wire.FlagMoreToCome, `{ wait: 1 }`)
	<-w.began
	c.Close()
	for range 50 {
		s.clock.Advance(watchInterval)
	}
	w.free <- struct{}{}
	if cause := <-w.cause; cause != nil {
		t.Errorf("the operation ended by %v", cause)
	}
}

func TestSlowClientDisturbsNobody(t *testing.T) {
	w := newWaiter()
	s := start(t, Options{}, w)
	ping := message(1, `{ ping: 1 }`)
	var slow []*client
	for i := range 30 {
		c := s.dial()
		c.raw(ping[:1+i%len(ping)])
		slow = append(slow, c)
	}
	// One says 48 MB and sends little; one asks and does not read; one has an operation that does not end.
	lying := s.dial()
	lying.raw([]byte{0, 0x6c, 0xdc, 2, 1, 0, 0, 0, 0, 0, 0, 0, 0xdd, 7, 0, 0, 1, 2, 3})
	stuck := s.dial()
	stuck.send(1, 0, `{ wait: 1 }`)
	<-w.began

	quick := s.dial()
	for range 100 {
		want(t, quick.ask(`{ ping: 1 }`), `{ ok: 1.0 }`)
	}
	for i, c := range slow {
		c.raw(ping[1+i%len(ping):])
		_, doc := c.receive()
		want(t, doc, `{ ok: 1.0 }`)
	}
}

func TestMaxConns(t *testing.T) {
	s := start(t, Options{MaxConns: 2}, echo)
	a, b := s.dial(), s.dial()
	a.ask(`{ ping: 1 }`)
	b.ask(`{ ping: 1 }`)
	s.dial().wantClosed()
	if stats := s.Stats(); stats.Current != 2 || stats.Available != 0 || stats.Rejected != 1 {
		t.Errorf("%+v", stats)
	}
	a.Close()
	for s.Stats().Current == 2 {
		runtime.Gosched()
	}
	want(t, s.dial().ask(`{ ping: 1 }`), `{ body: { ping: 1 }, ok: 1.0 }`)
	want(t, b.ask(`{ ping: 1 }`), `{ body: { ping: 1 }, ok: 1.0 }`)
}

// TestOverride: who is named comes in although there are as many connections as may be, and nobody else does.
func TestOverride(t *testing.T) {
	for _, c := range []struct {
		override    []string
		unix, comes bool
	}{
		{[]string{"10.0.0.0/8", "127.0.0.0/8"}, false, true},
		{[]string{"127.0.0.1"}, false, true},
		{[]string{"10.0.0.0/8", "::1", "127.0.0.2", "SOCKET"}, false, false},
		{[]string{"SOCKET"}, true, true},
		{[]string{"127.0.0.1", "0.0.0.0/0", "/tmp/other.sock"}, true, false},
	} {
		path := filepath.Join(t.TempDir(), "s.sock")
		for i, who := range c.override {
			c.override[i] = strings.ReplaceAll(who, "SOCKET", path)
		}
		s := start(t, Options{MaxConns: 1, Override: c.override, Sockets: []Socket{{path, 0o700}}}, echo)
		// The one that fills the server is there before the other comes.
		s.dial().ask(`{ ping: 1 }`)
		network, address := "tcp", s.Addr().String()
		if c.unix {
			network, address = "unix", path
		}
		socket, err := net.Dial(network, address)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { socket.Close() })
		other := newClient(t, socket)
		if c.comes {
			want(t, other.ask(`{ ping: 1 }`), `{ body: { ping: 1 }, ok: 1.0 }`)
		} else {
			other.wantClosed()
		}
	}
}

// TestEstablishment: who waits to be let in is told of, comes in when its turn comes, and does not hold up the server's end.
func TestEstablishment(t *testing.T) {
	turned, params := clock.NewFake(time.Now()), parameter.NewRegistry(nil)
	limiter := establishment.New(turned)
	limiter.AddParameters(params)
	for name, value := range map[string]bson.Value{"RatePerSec": bson.Int32(1), "BurstCapacitySecs": bson.Int32(1), "MaxQueueDepth": bson.Int32(1), "RateLimiterEnabled": bson.Bool(true)} {
		if _, err := params.Set("ingressConnectionEstablishment"+name, value, parameter.Runtime); err != nil {
			t.Fatal(err)
		}
	}
	s := start(t, Options{Establishment: limiter}, echo)
	want(t, s.dial().ask(`{ ping: 1 }`), `{ body: { ping: 1 }, ok: 1.0 }`)
	queued := func() *client {
		c := s.dial()
		for turned.Waiting() == 0 {
			runtime.Gosched()
		}
		return c
	}
	second := queued()
	s.dial().wantClosed()
	if st := s.Stats(); st.Establishment.Queued != 1 || st.Establishment.Rejected != 1 || st.Rejected != 1 {
		t.Errorf("%+v", st)
	}
	turned.Advance(time.Second)
	want(t, second.ask(`{ ping: 2 }`), `{ body: { ping: 2 }, ok: 1.0 }`)
	// Who has given up keeps his place until his turn comes.
	queued().Close()
	s.dial().wantClosed()
	turned.Advance(time.Second)
	for s.Stats().Current != 2 {
		runtime.Gosched()
	}
	third := queued()
	s.stop()
	third.wantClosed()
	if <-s.ended; s.err != nil { // nobody has to wait for the clock
		t.Error(s.err)
	}
}

func TestStopClosesIdleAndWaitsForWork(t *testing.T) {
	w := newWaiter()
	s := start(t, Options{}, w)
	idle, half, busy := s.dial(), s.dial(), s.dial()
	want(t, idle.ask(`{ ping: 1 }`), `{ ok: 1.0 }`)
	half.raw([]byte{36, 0, 0})
	busy.send(1, 0, `{ block: 1 }`)
	<-w.began
	s.stop()
	idle.wantClosed()
	half.wantClosed()
	<-s.Stopping()
	if c, err := net.Dial("tcp", s.Addr().String()); err == nil {
		defer c.Close()
		if _, err := c.Read(make([]byte, 1)); err == nil || errors.Is(err, syscall.EAGAIN) {
			t.Error("a new client is served")
		}
	}
	w.free <- struct{}{}
	_, doc := busy.receive()
	want(t, doc, `{ ok: 1.0 }`)
	busy.wantClosed()
	<-s.ended // without turning the clock: nothing was interrupted
	if s.err != nil {
		t.Error(s.err)
	}
}

func TestStopInterruptsAfterTheGrace(t *testing.T) {
	w := newWaiter()
	s := start(t, Options{}, w)
	c, silent := s.dial(), s.dial()
	c.send(1, 0, `{ wait: 1 }`)
	<-w.began
	silent.send(1, wire.FlagMoreToCome, `{ wait: 1 }`)
	<-w.began
	s.stop()
	s.waiting(2) // the look at operations, and the grace
	s.clock.Advance(grace - 1)
	select {
	case cause := <-w.cause:
		t.Fatalf("interrupted within the grace: %v", cause)
	default:
	}
	s.clock.Advance(1)
	for range 2 {
		if cause := <-w.cause; !mongoerr.Is(cause, mongoerr.InterruptedAtShutdown) {
			t.Errorf("the operation ended by %v", cause)
		}
		if w.lasts.Load() {
			t.Error("what lasts goes on when the server ends")
		}
	}
	_, doc := c.receive()
	want(t, doc, `{ ok: 0.0, errmsg: "interrupted at shutdown", code: 11600, codeName: "InterruptedAtShutdown" }`)
	<-s.ended
	if s.err != nil {
		t.Error(s.err)
	}
}

func TestStopGivesUpOnWhatDoesNotEnd(t *testing.T) {
	w := newWaiter()
	s := start(t, Options{}, w)
	s.dial().send(1, 0, `{ block: 1 }`)
	<-w.began
	s.stop()
	if err := s.end(); err == nil || !strings.Contains(err.Error(), "1 operations still run") {
		t.Errorf("Serve returned %v", err)
	}
	close(w.free)
	s.serving.Wait()
}

func TestStopEndsAStreamOfReplies(t *testing.T) {
	began := make(chan struct{}, 1)
	s := start(t, Options{}, handlerFunc(func(context.Context, *Conn, *Request) Reply {
		select {
		case began <- struct{}{}:
		default:
		}
		r := okReply()
		r.MoreToCome = true
		return r
	}))
	c := s.dial()
	c.send(1, wire.FlagExhaustAllowed, `{ hello: 1 }`)
	<-began
	go func() { _, _ = io.Copy(io.Discard, c) }()
	s.stop()
	<-s.ended
	if s.err != nil {
		t.Error(s.err)
	}
}

func TestListenErrors(t *testing.T) {
	first := start(t, Options{}, echo)
	port := first.Addr().(*net.TCPAddr).Port
	listen := func(port int, compressors []string, addresses ...string) error {
		s, err := Listen(t.Context(), Options{Addresses: addresses, Port: port, Compressors: compressors,
			Log: serverlog.Discard().For("NETWORK"), Clock: clock.Wall()})
		if err == nil {
			s.Close()
		}
		return err
	}
	if err := listen(port, nil, "127.0.0.1"); !errors.Is(err, syscall.EADDRINUSE) {
		t.Errorf("busy port: %v", err)
	}
	// What was opened before the failure is closed again.
	if err := listen(port, nil, "127.0.0.2", "127.0.0.1"); !errors.Is(err, syscall.EADDRINUSE) {
		t.Errorf("busy port: %v", err)
	}
	if err := listen(port, nil, "127.0.0.2"); err != nil {
		t.Errorf("a listener was left open: %v", err)
	}
	if err := listen(0, nil, "192.0.2.1"); !errors.Is(err, syscall.EADDRNOTAVAIL) {
		t.Errorf("foreign address: %v", err)
	}
	if err := listen(0, nil, "no-such-host.invalid"); err == nil || !strings.Contains(err.Error(), "no-such-host.invalid") {
		t.Errorf("unknown host: %v", err)
	}
	if err := listen(0, []string{"lzma"}, "127.0.0.1"); err == nil || !strings.Contains(err.Error(), "lzma") {
		t.Errorf("unknown compressor: %v", err)
	}
	if err := listen(0, nil); err == nil {
		t.Error("no address at all")
	}
	if err := listen(0, nil, "127.0.0.1", "127.0.0.2", "localhost", "127.0.0.1"); err != nil {
		t.Errorf("several addresses: %v", err)
	}
}
