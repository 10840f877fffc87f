package server

import (
	"context"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"runtime"
	"slices"
	"testing"
	"time"

	"github.com/ebbdb/ebb/internal/bson"
	"github.com/ebbdb/ebb/internal/clock"
	"github.com/ebbdb/ebb/internal/serverlog"
	"github.com/ebbdb/ebb/internal/wire"
)

// handlerFunc is a Handler made of a function.
type handlerFunc func(context.Context, *Conn, *Request) Reply

func (f handlerFunc) Handle(ctx context.Context, c *Conn, r *Request) Reply { return f(ctx, c, r) }

func (handlerFunc) Connected(*Conn)    {}
func (handlerFunc) Disconnected(*Conn) {}

func okReply() Reply { return Reply{Body: bson.Build().Double("ok", 1).Doc()} }

// served is a server under test.
type served struct {
	*Server
	t     testing.TB
	clock *clock.Fake
	stop  context.CancelFunc

	ended chan struct{}
	err   error
}

func start(t *testing.T, opts Options, h Handler) *served {
	t.Helper()
	s := &served{t: t, clock: clock.NewFake(time.Now()), ended: make(chan struct{})}
	opts.Addresses, opts.Clock = []string{"127.0.0.1"}, s.clock
	if opts.Log == nil {
		opts.Log = serverlog.Discard().For("NETWORK")
	}
	if opts.MaxConns == 0 {
		opts.MaxConns = 100
	}
	if opts.Compressors == nil {
		opts.Compressors = wire.CompressorNames()
	}
	var err error
	if s.Server, err = Listen(t.Context(), opts); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	s.stop = cancel
	go func() {
		s.err = s.Serve(ctx, h)
		close(s.ended)
	}()
	t.Cleanup(func() {
		cancel()
		if err := s.end(); err != nil && !t.Failed() {
			t.Logf("server ended with: %v", err)
		}
	})
	return s
}

// end waits for Serve to return, and turns the clock meanwhile.
func (s *served) end() error {
	s.turnUntil(s.ended)
	return s.err
}

// turnUntil turns the clock until done closes.
func (s *served) turnUntil(done <-chan struct{}) {
	for {
		select {
		case <-done:
			return
		default:
			s.clock.Advance(watchInterval)
			runtime.Gosched()
		}
	}
}

// atRest returns once the server has done what there is to do for replies that clients have already. Without it the clock may turn by
// minutes in the moment between a reply and that.
func (s *served) atRest() {
	isBusy := func(c *Conn) bool { return c.transfer.busy.Load() }
	for slices.ContainsFunc(s.connections(), isBusy) {
		runtime.Gosched()
	}
}

// waiting returns once n timers wait for the clock.
func (s *served) waiting(n int) {
	for s.clock.Waiting() != n {
		runtime.Gosched()
	}
}

// client is one connection to a server under test.
type client struct {
	net.Conn
	t testing.TB
	r *wire.Reader
	w *wire.Writer
}

func (s *served) dial() *client {
	s.t.Helper()
	return dialTo(s.t, s.Addr().String())
}

func dialTo(t testing.TB, address string) *client {
	t.Helper()
	c, err := net.Dial("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	return newClient(t, c)
}

func newClient(t testing.TB, c net.Conn) *client {
	t.Helper()
	t.Cleanup(func() { c.Close() })
	codec, err := wire.NewCodec(wire.CompressorNames())
	if err != nil {
		t.Fatal(err)
	}
	return &client{Conn: c, t: t, r: codec.NewReader(c), w: codec.NewWriter(c)}
}

// send sends the body as OP_MSG.
func (c *client) send(id int32, flags wire.Flags, body string) {
	c.t.Helper()
	c.sendWith(wire.Uncompressed, id, flags, body)
}

func (c *client) sendWith(compressor wire.CompressorID, id int32, flags wire.Flags, body string) {
	c.t.Helper()
	_, err := c.w.WriteMessage(wire.Outgoing{
		RequestID: id, OpCode: wire.OpMsg, Flags: flags, Compressor: compressor, Body: bson.MustDoc(body),
	})
	if err != nil {
		c.t.Fatal(err)
	}
}

// receive reads one reply and copies its body.
func (c *client) receive() (wire.Message, bson.Doc) {
	c.t.Helper()
	m, err := c.r.ReadMessage()
	if err != nil {
		c.t.Fatalf("no reply: %v", err)
	}
	defer m.Release()
	return *m, m.Body.Clone()
}

// ask is send and receive.
func (c *client) ask(body string) bson.Doc {
	c.t.Helper()
	c.send(1, 0, body)
	_, doc := c.receive()
	return doc
}

func (c *client) raw(b []byte) {
	c.t.Helper()
	if _, err := c.Write(b); err != nil {
		c.t.Fatal(err)
	}
}

// wantClosed reads until the server closed the connection, and fails when it sends anything.
func (c *client) wantClosed() {
	c.t.Helper()
	var b [1]byte
	n, err := c.Read(b[:])
	var reset *net.OpError
	if n > 0 || !errors.Is(err, io.EOF) && !errors.As(err, &reset) {
		c.t.Fatalf("the connection is open: %d bytes, %v", n, err)
	}
}

// frame is a message around payload.
func frame(code wire.OpCode, id int32, payload []byte) []byte {
	b := binary.LittleEndian.AppendUint32(nil, uint32(16+len(payload)))
	b = binary.LittleEndian.AppendUint32(b, uint32(id))
	b = binary.LittleEndian.AppendUint32(b, 0)
	b = binary.LittleEndian.AppendUint32(b, uint32(code))
	return append(b, payload...)
}

func query(id int32, namespace, body string) []byte {
	payload := append(make([]byte, 4), namespace+"\x00"...)
	payload = append(payload, 0, 0, 0, 0, 0xff, 0xff, 0xff, 0xff)
	return frame(wire.OpQuery, id, append(payload, bson.MustDoc(body)...))
}

// want compares a reply as text.
func want(t *testing.T, got bson.Doc, text string) {
	t.Helper()
	if s := got.Value().String(); s != text {
		t.Errorf("got  %s\nwant %s", s, text)
	}
}
