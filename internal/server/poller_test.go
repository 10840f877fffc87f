package server

import (
	"bytes"
	"context"
	"math/rand/v2"
	"os"
	"os/exec"
	"sync"
	"testing"
	"time"

	"github.com/ebbdb/ebb/internal/bson"
	"github.com/ebbdb/ebb/internal/wire"
)

// TestWithoutPollers runs the tests of this package again with a goroutine for each connection, as other systems have it.
func TestWithoutPollers(t *testing.T) {
	if *plain {
		t.Skip("these are the tests without")
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	out, err := exec.CommandContext(t.Context(), self, "-plain", "-test.timeout=2m").CombinedOutput()
	if err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}

// TestASlowRequestTakenForQuickHoldsUpNobody has requests that never end without help, one behind the other, on connections
// that share a poller with one that pings.
func TestASlowRequestTakenForQuickHoldsUpNobody(t *testing.T) {
	free := make(chan struct{})
	s := start(t, Options{}, handlerFunc(func(_ context.Context, _ *Conn, r *Request) Reply {
		if r.Body.FirstKey() == "block" {
			<-free
		}
		return okReply()
	}))
	other := s.dial()
	var slow []*client
	for range 5 {
		c := s.dial()
		c.send(1, 0, `{ block: 1 }`)
		slow = append(slow, c)
		want(t, other.ask(`{ ping: 1 }`), `{ ok: 1.0 }`)
	}
	close(free)
	for _, c := range slow {
		c.receive()
		want(t, c.ask(`{ ping: 1 }`), `{ ok: 1.0 }`)
	}
}

// TestAQuickReplyThatNobodyReadsHoldsUpNobody has a poller write more than a socket takes.
func TestAQuickReplyThatNobodyReadsHoldsUpNobody(t *testing.T) {
	large := bson.Build().Binary("b", 0, make([]byte, 15<<20)).Doc()
	s := start(t, Options{}, handlerFunc(func(_ context.Context, _ *Conn, r *Request) Reply {
		if r.Body.FirstKey() == "large" {
			return Reply{Body: large}
		}
		return okReply()
	}))
	lazy, other := s.dial(), s.dial()
	for i := range int32(3) {
		lazy.send(i, 0, `{ large: 1 }`)
	}
	for range 20 {
		want(t, other.ask(`{ ping: 1 }`), `{ ok: 1.0 }`)
	}
	for i := range int32(3) {
		if m, body := lazy.receive(); m.ResponseTo != i || !bytes.Equal(body, large) {
			t.Errorf("reply to %d of %d bytes", m.ResponseTo, len(body))
		}
	}
	want(t, lazy.ask(`{ ping: 1 }`), `{ ok: 1.0 }`)
}

// TestHalfAMessageHoldsUpNobody has messages of all sizes arrive in pieces, between whole ones of somebody else.
func TestHalfAMessageHoldsUpNobody(t *testing.T) {
	s := start(t, Options{}, echo)
	c, other := s.dial(), s.dial()
	for _, size := range []int{0, 10, 4000, 5000, 70_000, 400_000} {
		body := bson.Build().Binary("b", 0, make([]byte, size)).Doc()
		message := frame(wire.OpMsg, 7, append([]byte{0, 0, 0, 0, 0}, body...))
		for len(message) > 0 {
			n := min(len(message), 1+rand.IntN(1+size/5))
			c.raw(message[:n])
			message = message[n:]
			want(t, other.ask(`{ ping: 1 }`), `{ body: { ping: 1 }, ok: 1.0 }`)
		}
		if m, _ := c.receive(); m.ResponseTo != 7 {
			t.Errorf("a reply to %d", m.ResponseTo)
		}
	}
	c.raw(frame(wire.OpMsg, 1, make([]byte, 100_000))[:50_000]) // and stopping leaves nobody waiting for the rest
}

// deferring is a handler that replies to "later" when it is told to, from another goroutine, and sees that it is finished once.
type deferring struct {
	handlerFunc
	calls chan func()
	free  chan struct{}
}

func newDeferring() *deferring {
	d := &deferring{calls: make(chan func(), 1000), free: make(chan struct{})}
	d.handlerFunc = func(_ context.Context, c *Conn, r *Request) Reply {
		switch r.Body.FirstKey() {
		case "panic":
			d.calls <- r.Later
			panic("on purpose")
		case "block":
			<-d.free
			return okReply()
		case "now":
			c.SetState(r.RequestID)
			r.Later()
		case "later":
			c.SetState(r.RequestID)
			d.calls <- r.Later
		default:
			return okReply()
		}
		return Reply{Pending: true}
	}
	return d
}

func (d *deferring) Finish(c *Conn) Reply {
	id := c.State().(int32)
	c.SetState(nil) // a second Finish panics
	return Reply{Body: bson.Build().Int32("finished", id).Doc()}
}

func skipPlain(t *testing.T) {
	t.Helper()
	if *plain {
		t.Skip("a connection with a goroutine of its own waits in Handle")
	}
}

func TestPendingRepliesKeepTheOrder(t *testing.T) {
	skipPlain(t)
	d := newDeferring()
	s := start(t, Options{}, d)
	c := s.dial()
	for id := int32(1); id <= 30; id += 3 {
		c.send(id, 0, `{ later: 1 }`)
		c.send(id+1, 0, `{ ping: 1 }`)
		c.send(id+2, 0, `{ now: 1 }`)
	}
	for id := int32(1); id <= 30; id++ {
		if id%3 == 1 {
			(<-d.calls)()
		}
		m, body := c.receive()
		if m.ResponseTo != id {
			t.Fatalf("a reply to %d, not to %d", m.ResponseTo, id)
		}
		if v := body.Lookup("finished"); id%3 != 2 && v.Int32() != int32(id) {
			t.Errorf("request %d: %s", id, body.Value().String())
		}
	}
}

func TestPendingRepliesOfManyComeTogether(t *testing.T) {
	skipPlain(t)
	d := newDeferring()
	s := start(t, Options{}, d)
	var all []*client
	for i := range int32(50) {
		c := s.dial()
		c.send(i, 0, `{ later: 1 }`)
		all = append(all, c)
	}
	var calls []func()
	for range all {
		calls = append(calls, <-d.calls)
	}
	if n := s.Stats().Active; n != 50 {
		t.Errorf("%d operations are active", n)
	}
	all[3].Close()
	for _, later := range calls {
		go later()
	}
	for i, c := range all {
		if i == 3 {
			continue
		}
		_, body := c.receive()
		if v := body.Lookup("finished"); v.Int32() != int32(i) {
			t.Errorf("client %d: %s", i, body.Value().String())
		}
	}
	until(func() bool { return s.Stats().Active == 0 && s.Stats().Current == 49 })
}

// TestWhatComesBehindAPendingReplyHoldsUpNobody has a request that does not end follow one that is pending.
func TestWhatComesBehindAPendingReplyHoldsUpNobody(t *testing.T) {
	skipPlain(t)
	d := newDeferring()
	s := start(t, Options{}, d)
	c, other := s.dial(), s.dial()
	both := append(frame(wire.OpMsg, 1, append([]byte{0, 0, 0, 0, 0}, bson.MustDoc(`{ later: 1 }`)...)),
		frame(wire.OpMsg, 2, append([]byte{0, 0, 0, 0, 0}, bson.MustDoc(`{ block: 1 }`)...))...)
	c.raw(both)
	first := <-d.calls
	other.send(3, 0, `{ later: 1 }`)
	second := <-d.calls
	first()
	c.receive()
	second()
	if m, _ := other.receive(); m.ResponseTo != 3 {
		t.Errorf("a reply to %d", m.ResponseTo)
	}
	close(d.free)
	if m, _ := c.receive(); m.ResponseTo != 2 {
		t.Errorf("a reply to %d", m.ResponseTo)
	}
}

// TestAPanicLeavesNothingPending has the handler fail after it arranged for a later reply.
func TestAPanicLeavesNothingPending(t *testing.T) {
	skipPlain(t)
	d := newDeferring()
	s := start(t, Options{}, d)
	c := s.dial()
	if code := c.ask(`{ panic: 1 }`).Lookup("ok"); code.Truthy() {
		t.Error("a panic is no success")
	}
	stale := <-d.calls
	c.send(2, 0, `{ later: 1 }`)
	later := <-d.calls
	stale()
	later()
	if m, body := c.receive(); m.ResponseTo != 2 || body.Lookup("finished").Int32() != 2 {
		t.Errorf("got %s", body.Value().String())
	}
}

// TestStopWaitsForPendingReplies has the server stop between Handle and Finish.
func TestStopWaitsForPendingReplies(t *testing.T) {
	skipPlain(t)
	d := newDeferring()
	s := start(t, Options{}, d)
	c, idle := s.dial(), s.dial()
	want(t, idle.ask(`{ ping: 1 }`), `{ ok: 1.0 }`)
	c.send(1, 0, `{ later: 1 }`)
	later := <-d.calls
	s.stop()
	idle.wantClosed()
	later()
	if m, _ := c.receive(); m.ResponseTo != 1 {
		t.Errorf("a reply to %d", m.ResponseTo)
	}
	c.wantClosed()
	<-s.ended
	if s.err != nil {
		t.Error(s.err)
	}
}

// TestClientsComeAndGo has clients of all kinds at once: they pipeline, leave in the middle, and ask for what is quick, slow
// and pending.
func TestClientsComeAndGo(t *testing.T) {
	h := handlerFunc(func(_ context.Context, c *Conn, r *Request) Reply {
		if r.Body.FirstKey() == "later" && r.Later != nil {
			go r.Later()
			return Reply{Pending: true}
		}
		return okReply()
	})
	s := start(t, Options{MaxConns: 1000}, mixed{h})
	var clients sync.WaitGroup
	for i := range 8 {
		clients.Go(func() {
			random := rand.New(rand.NewPCG(1, uint64(i)))
			for range 30 {
				comeAndGo(t, s.dial(), random)
			}
		})
	}
	clients.Wait()
	until(func() bool { return s.Stats().Current == 0 })
	if n := s.Stats().Active; n != 0 {
		t.Errorf("%d operations are active", n)
	}
}

// mixed takes every other request for quick.
type mixed struct{ handlerFunc }

func (mixed) Finish(*Conn) Reply             { return okReply() }
func (mixed) Quick(_ *Conn, r *Request) bool { return r.RequestID%2 == 0 }

// comeAndGo sends requests, more at once than the buffer holds, reads the replies and leaves, now and then before.
func comeAndGo(t *testing.T, c *client, random *rand.Rand) {
	defer c.Close()
	n := 1 + random.Int32N(100)
	var batch []byte
	for id := range n {
		body := bson.Build().Int32([]string{"ping", "later", "find"}[random.IntN(3)], 1).Binary("b", 0, make([]byte, random.IntN(300)))
		if random.IntN(40) == 0 {
			body.Binary("large", 0, make([]byte, 20_000))
		}
		batch = append(batch, frame(wire.OpMsg, id, append([]byte{0, 0, 0, 0, 0}, body.Doc()...))...)
	}
	c.raw(batch)
	if random.IntN(3) == 0 {
		n = random.Int32N(n)
	}
	_ = c.SetReadDeadline(time.Now().Add(time.Minute)) // a test that hangs says where
	for id := range n {
		m, err := c.r.ReadMessage()
		if err != nil {
			t.Errorf("reply %d of %d: %v", id, n, err)
			return
		}
		if m.ResponseTo != id {
			t.Errorf("a reply to %d, not to %d", m.ResponseTo, id)
		}
		m.Release()
	}
}
