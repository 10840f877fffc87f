package server

import (
	"bytes"
	"context"
	"net"
	"runtime"
	"testing"
	"time"

	"github.com/ebbdb/ebb/internal/bson"
	"github.com/ebbdb/ebb/internal/clock"
	"github.com/ebbdb/ebb/internal/memory"
	"github.com/ebbdb/ebb/internal/wire"
)

// largeMessage is a whole message of about size bytes.
func largeMessage(id int32, size int) []byte {
	body := bson.Build().Int32("ping", 1).Binary("pad", 0, make([]byte, size)).Doc()
	return frame(wire.OpMsg, id, append([]byte{0, 0, 0, 0, 0}, body...))
}

// until waits for what another goroutine does.
func until(is func() bool) {
	for !is() {
		runtime.Gosched()
	}
}

func (s *served) queued() int {
	s.budget.mu.Lock()
	defer s.budget.mu.Unlock()
	return len(s.budget.mu.waiting)
}

func (s *served) free() int64 {
	s.budget.mu.Lock()
	defer s.budget.mu.Unlock()
	return s.budget.mu.free
}

// TestLargeMessagesShareABudget: while one large message is under way the next waits, small ones do not, and nothing stays
// taken.
func TestLargeMessagesShareABudget(t *testing.T) {
	w := newWaiter()
	const whole = 300 << 10
	s := start(t, Options{InFlightBytes: whole}, w)
	block := bson.Build().Int32("block", 1).Binary("pad", 0, make([]byte, 200<<10)).Doc()
	first, second, third := s.dial(), s.dial(), s.dial()
	first.raw(frame(wire.OpMsg, 1, append([]byte{0, 0, 0, 0, 0}, block...)))
	<-w.began
	go func() { _, _ = second.Write(largeMessage(2, 200<<10)) }()
	until(func() bool { return s.queued() == 1 })
	want(t, third.ask(`{ ping: 1 }`), `{ ok: 1.0 }`)
	w.free <- struct{}{}
	first.receive()
	second.receive()
	// More than there is in all goes alone.
	go func() { _, _ = third.Write(largeMessage(3, 1<<20)) }()
	third.receive()
	until(func() bool { return s.free() == whole })
}

// TestAZipBombWaits: what a small compressed message becomes counts.
func TestAZipBombWaits(t *testing.T) {
	w := newWaiter()
	s := start(t, Options{InFlightBytes: 2 << 20}, w)
	first, bomb := s.dial(), s.dial()
	first.raw(frame(wire.OpMsg, 1, append([]byte{0, 0, 0, 0, 0}, bson.Build().Int32("block", 1).Binary("pad", 0, make([]byte, 1<<20)).Doc()...)))
	<-w.began
	_, err := bomb.w.WriteMessage(wire.Outgoing{RequestID: 2, OpCode: wire.OpMsg, Compressor: wire.Zstd,
		Body: bson.Build().Int32("ping", 1).Binary("pad", 0, make([]byte, 2<<20)).Doc()})
	if err != nil {
		t.Fatal(err)
	}
	until(func() bool { return s.queued() == 1 })
	w.free <- struct{}{}
	bomb.receive()
}

// TestStopEndsTheWaitForMemory: who waits for the budget when the server stops is not waited for.
func TestStopEndsTheWaitForMemory(t *testing.T) {
	w := newWaiter()
	s := start(t, Options{InFlightBytes: 1}, w)
	first, second := s.dial(), s.dial()
	first.raw(frame(wire.OpMsg, 1, append([]byte{0, 0, 0, 0, 0}, bson.Build().Int32("block", 1).Binary("pad", 0, make([]byte, 1<<20)).Doc()...)))
	<-w.began
	go func() { _, _ = second.Write(largeMessage(2, 200<<10)) }()
	until(func() bool { return s.queued() == 1 })
	s.stop()
	until(func() bool { return s.queued() == 0 })
	w.free <- struct{}{}
	<-s.ended
	if s.err != nil {
		t.Error(s.err)
	}
}

// large answers with more than the kernel buffers.
func large() handlerFunc {
	body := bson.Build().Binary("pad", 0, make([]byte, 40<<20)).Double("ok", 1).Doc()
	return func(_ context.Context, _ *Conn, r *Request) Reply {
		if r.Body.FirstKey() == "large" {
			return Reply{Body: body}
		}
		return okReply()
	}
}

// TestWhoDoesNotReadIsClosed: a client that leaves its reply lying is closed after the time-out; one that reads slowly, and
// one that is idle, are not.
func TestWhoDoesNotReadIsClosed(t *testing.T) {
	g := memory.New(1<<30, clock.Wall(), nil)
	s := start(t, Options{Memory: g}, large())
	stuck, slow, idle := s.dial(), s.dial(), s.dial()
	for _, c := range []*client{stuck, slow} {
		_ = c.Conn.(*net.TCPConn).SetReadBuffer(64 << 10)
		c.send(1, 0, `{ large: 1 }`)
	}
	idle.ask(`{ ping: 1 }`)
	until(func() bool { return g.Stats().By[memory.Replies] >= 79<<20 })
	steady := func() bool { // until both are blocked, so that only the clients make progress
		n := s.written()
		time.Sleep(20 * time.Millisecond)
		return n == s.written()
	}
	until(steady)
	for range 5 {
		for range int(stallTimeout/watchInterval) / 2 {
			s.waiting(1)
			s.clock.Advance(watchInterval)
		}
		readSome(t, slow, 2<<20)
		until(steady)
	}
	until(func() bool { return s.Stats().Current == 2 })
	want(t, idle.ask(`{ ping: 1 }`), `{ ok: 1.0 }`)
	readSome(t, slow, 1<<20)
}

// TestUnreadRepliesGiveWay: when memory is short the reply that waits longest is given up, and no other.
func TestUnreadRepliesGiveWay(t *testing.T) {
	g := memory.New(100<<20, clock.Wall(), nil)
	defer g.Close()
	s := start(t, Options{Memory: g}, large())
	first, second, idle := s.dial(), s.dial(), s.dial()
	for i, c := range []*client{first, second} {
		_ = c.Conn.(*net.TCPConn).SetReadBuffer(64 << 10)
		c.send(1, 0, `{ large: 1 }`)
		until(func() bool { return g.Stats().By[memory.Replies] >= int64(i+1)*39<<20 })
		s.clock.Advance(unreadPatience / 2)
	}
	var a memory.Account
	a.Open(g, memory.Operators)
	if a.Take(30 << 20) {
		t.Error("there is more memory than there should be")
	}
	if err := a.Wait(t.Context(), 30<<20); err != nil {
		t.Fatal(err)
	}
	until(func() bool { return s.Stats().Current == 2 }) // a connection's memory is given back just before it goes
	want(t, idle.ask(`{ ping: 1 }`), `{ ok: 1.0 }`)
	readSome(t, second, 30<<20)
}

// TestWhoDoesNotSendTheRestIsClosed: a message that memory is held for has to arrive.
func TestWhoDoesNotSendTheRestIsClosed(t *testing.T) {
	s := start(t, Options{}, echo)
	c := s.dial()
	c.raw(largeMessage(1, 1<<20)[:200<<10])
	until(func() bool { return s.free() < inFlightBytes })
	closed := make(chan struct{})
	go func() {
		defer close(closed)
		until(func() bool { return s.free() == inFlightBytes })
	}()
	s.turnUntil(closed)
	c.wantClosed()
}

// TestWhoSendsSlowlyMakesRoom: while others wait for the memory that a message holds it has to arrive soon. A trickle does not keep it.
func TestWhoSendsSlowlyMakesRoom(t *testing.T) {
	const size, whole = 4 << 20, 5 << 20
	s := start(t, Options{InFlightBytes: whole}, echo)
	slow, next := s.dial(), s.dial()
	message := largeMessage(1, size)
	sent := 600 << 10
	slow.raw(message[:sent])
	until(func() bool { return s.free() == 0 })
	trickle := func() { // as much as keeps it where nobody waits
		_, _ = slow.Write(message[sent : sent+stallBytes]) // it may have been closed meanwhile
		sent += stallBytes
		until(func() bool { return s.received() >= int64(sent)-1024 || s.Stats().Current < 2 })
		for range crowdedTimeout/watchInterval - 1 {
			s.waiting(1)
			s.clock.Advance(watchInterval)
		}
		s.waiting(1)
	}
	for range 4 {
		trickle()
	}
	if s.free() != 0 {
		t.Fatal("a message that nobody waits for was given up")
	}
	go func() { _, _ = next.Write(largeMessage(2, 1<<20)) }()
	until(func() bool { return s.queued() == 1 })
	for s.queued() == 1 {
		if trickle(); sent > size*3/4 {
			t.Fatal("a trickle has others wait")
		}
	}
	next.receive()
	slow.wantClosed()
}

func (s *served) received() (most int64) {
	for _, c := range s.connections() {
		most = max(most, c.reader.Received())
	}
	return most
}

func (s *served) written() (n int64) {
	for _, c := range s.connections() {
		n += c.writer.Written()
	}
	return n
}

func readSome(t *testing.T, c *client, n int) {
	t.Helper()
	for got := 0; got < n; {
		more, err := c.Read(make([]byte, 256<<10))
		if err != nil {
			t.Fatal(err)
		}
		got += more
	}
}

// TestLargeRepliesArriveWhole: replies are written in steps.
func TestLargeRepliesArriveWhole(t *testing.T) {
	for _, size := range []int{256<<10 - 60, 256 << 10, 1 << 20} {
		pad := bytes.Repeat([]byte("abcdefg"), size/7)
		s := start(t, Options{}, handlerFunc(func(context.Context, *Conn, *Request) Reply {
			return Reply{Body: bson.Build().Binary("pad", 0, pad).Doc()}
		}))
		for _, flags := range []wire.Flags{0, wire.FlagChecksumPresent} {
			c := s.dial()
			c.send(1, flags, `{ large: 1 }`)
			_, doc := c.receive()
			if _, got := doc.Lookup("pad").Binary(); !bytes.Equal(got, pad) {
				t.Errorf("%d bytes of %d came, or others", len(got), len(pad))
			}
		}
	}
}
