package server

import (
	"net"
	"net/http"
	"runtime"
	"testing"
)

// crowded is a Crowd of one, with those who come.
type crowded struct {
	t *testing.T
	*Crowd
}

func (c crowded) dial() net.Conn {
	c.t.Helper()
	d, err := net.Dial("tcp", c.Addr().String())
	if err != nil {
		c.t.Fatal(err)
	}
	c.t.Cleanup(func() { d.Close() })
	return d
}

func (c crowded) accept() net.Conn {
	c.t.Helper()
	a, err := c.Accept()
	if err != nil {
		c.t.Fatal(err)
	}
	return a
}

func newCrowded(t *testing.T) crowded {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	c := crowded{t, NewCrowd(l, 1)}
	t.Cleanup(func() { c.Close() })
	return c
}

// TestCrowd: who asks for nothing gives its place to who comes, at once or as soon as its answer is over.
func TestCrowd(t *testing.T) {
	c := newCrowded(t)
	first := c.dial()
	c.accept()
	c.dial()
	accepted := c.accept()
	if _, err := first.Read(make([]byte, 1)); err == nil {
		t.Error("the first is still there")
	}
	NoteState(accepted, http.StateActive)
	c.dial()
	next := make(chan net.Conn)
	go func() {
		n, _ := c.Accept()
		next <- n
	}()
	for !c.hasWaiting() {
		runtime.Gosched()
	}
	NoteState(accepted, http.StateIdle)
	if n := <-next; n == nil {
		t.Error("nobody was accepted")
	}
}

// hasWaiting says whether somebody waits for a place.
func (c crowded) hasWaiting() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.mu.waiting
}

// TestCrowdAtWork: who is answered keeps its place until it goes.
func TestCrowdAtWork(t *testing.T) {
	c := newCrowded(t)
	client := c.dial()
	busy := c.accept()
	NoteState(busy, http.StateActive)
	c.dial()
	done := make(chan struct{})
	go func() {
		_, _ = c.Accept()
		close(done)
	}()
	if _, err := busy.Write([]byte("x")); err != nil {
		t.Error(err)
	}
	if _, err := client.Read(make([]byte, 1)); err != nil {
		t.Error(err)
	}
	busy.Close()
	<-done
}
