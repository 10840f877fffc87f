package server

import (
	"bytes"
	"context"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/ebbdb/ebb/internal/bson"
	"github.com/ebbdb/ebb/internal/wire"
)

// TestASlowRequestHoldsUpNobody has requests that never end without help beside a connection that pings.
func TestASlowRequestHoldsUpNobody(t *testing.T) {
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

// TestAReplyThatNobodyReadsHoldsUpNobody has the server write more than a socket takes.
func TestAReplyThatNobodyReadsHoldsUpNobody(t *testing.T) {
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

// disk is a handler whose "durable" waits until the disk, which is the test, has synced.
type disk struct {
	handlerFunc
	came chan int32
	done chan struct{}
}

func newDisk() *disk {
	d := &disk{came: make(chan int32, 1000), done: make(chan struct{})}
	d.handlerFunc = func(_ context.Context, _ *Conn, r *Request) Reply {
		if r.Body.FirstKey() == "durable" {
			d.came <- r.RequestID
			<-d.done
			return Reply{Body: bson.Build().Int32("durable", r.RequestID).Doc()}
		}
		return okReply()
	}
	return d
}

// TestPipelinedRequestsWaitForTheDisk has a client send many requests at once. None is handled before the reply to the one before
// it is written.
func TestPipelinedRequestsWaitForTheDisk(t *testing.T) {
	d := newDisk()
	s := start(t, Options{}, d)
	c := s.dial()
	var all []byte
	const n = 300 // more than the buffer holds
	for id := range int32(n) {
		all = append(all, message(id, []string{`{ durable: 1 }`, `{ ping: 1 }`}[id%2])...)
	}
	c.raw(all)
	for id := range int32(n) {
		if id%2 == 0 {
			if came := <-d.came; came != id {
				t.Fatalf("request %d came, not %d", came, id)
			}
			if more := s.Stats().Requests; more != int64(id)+1 {
				t.Errorf("%d requests were read while %d waited", more, id)
			}
			d.done <- struct{}{}
		}
		if m, body := c.receive(); m.ResponseTo != id || id%2 == 0 && body.Lookup("durable").Int32() != id {
			t.Fatalf("a reply to %d, not to %d: %s", m.ResponseTo, id, body.Value().String())
		}
	}
}

// TestManyWaitForTheDiskTogether has some clients leave meanwhile: what they asked for ends all the same, and nobody else notices.
func TestManyWaitForTheDiskTogether(t *testing.T) {
	d := newDisk()
	s := start(t, Options{}, d)
	var all []*client
	for i := range int32(50) {
		c := s.dial()
		c.send(i, 0, `{ durable: 1 }`)
		all = append(all, c)
	}
	for range all {
		<-d.came
	}
	if n := s.Stats().Active; n != 50 {
		t.Errorf("%d operations are active", n)
	}
	all[3].Close()
	all[4].send(100, 0, `{ ping: 1 }`)
	all[4].Close()
	for range 5 {
		s.waiting(1)
		s.clock.Advance(watchInterval)
	}
	close(d.done)
	for i, c := range all {
		if i == 3 || i == 4 {
			continue
		}
		if _, body := c.receive(); body.Lookup("durable").Int32() != int32(i) {
			t.Errorf("client %d: %s", i, body.Value().String())
		}
	}
	until(func() bool { return s.Stats().Active == 0 && s.Stats().Current == 48 })
}

// TestStopWaitsForTheDisk has the server stop while a client waits for the disk.
func TestStopWaitsForTheDisk(t *testing.T) {
	d := newDisk()
	s := start(t, Options{}, d)
	c, idle := s.dial(), s.dial()
	want(t, idle.ask(`{ ping: 1 }`), `{ ok: 1.0 }`)
	c.send(1, 0, `{ durable: 1 }`)
	<-d.came
	s.stop()
	idle.wantClosed()
	d.done <- struct{}{}
	if m, _ := c.receive(); m.ResponseTo != 1 {
		t.Errorf("a reply to %d", m.ResponseTo)
	}
	c.wantClosed()
	<-s.ended
	if s.err != nil {
		t.Error(s.err)
	}
}

// TestClientsComeAndGo has clients of all kinds at once: they pipeline, leave in the middle, and ask for what is quick and for what
// waits.
func TestClientsComeAndGo(t *testing.T) {
	h := handlerFunc(func(_ context.Context, _ *Conn, r *Request) Reply {
		if r.Body.FirstKey() == "later" {
			done := make(chan struct{})
			go close(done)
			<-done
		}
		return okReply()
	})
	s := start(t, Options{MaxConns: 1000}, h)
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
