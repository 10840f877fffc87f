package writegate

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
)

func TestLocksCount(t *testing.T) {
	var g Gate
	if _, ok := g.Open(); ok {
		t.Error("an open gate was opened")
	}
	for want := int64(1); want <= 2; want++ {
		if n, err := g.Shut(t.Context()); n != want || err != nil {
			t.Errorf("shut: %d, %v", n, err)
		}
	}
	for want := int64(1); want >= 0; want-- {
		if n, ok := g.Open(); n != want || !ok {
			t.Errorf("opened: %d, %v", n, ok)
		}
	}
	if g.Locks() != 0 {
		t.Error("not open again")
	}
}

func TestAShutGateHoldsWritersUp(t *testing.T) {
	var g Gate
	if _, err := g.Shut(t.Context()); err != nil {
		t.Fatal(err)
	}
	why := errors.New("killed")
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(why)
	if err := g.Enter(ctx); !errors.Is(err, why) {
		t.Errorf("entered: %v", err)
	}
	entered := make(chan error)
	go func() { entered <- g.Enter(t.Context()) }()
	g.Open()
	if err := <-entered; err != nil {
		t.Fatal(err)
	}
	g.Leave()
}

func TestShuttingWaitsForThoseInside(t *testing.T) {
	var g Gate
	if err := g.Enter(t.Context()); err != nil {
		t.Fatal(err)
	}
	why := errors.New("out of time")
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(why)
	if n, err := g.Shut(ctx); n != 0 || !errors.Is(err, why) {
		t.Errorf("shut around a writer: %d, %v", n, err)
	}
	if err := g.Enter(t.Context()); err != nil { // as it was before
		t.Fatal(err)
	}
	g.Leave()
	shut := make(chan error)
	go func() { _, err := g.Shut(t.Context()); shut <- err }()
	g.Leave()
	if err := <-shut; err != nil || g.Locks() != 1 {
		t.Error(err)
	}
}

func TestLeavingUnentered(t *testing.T) {
	defer func() {
		if recover() == nil {
			t.Error("no panic")
		}
	}()
	var g Gate
	g.Leave()
}

// While the gate is shut nobody is inside, whoever comes and goes.
func TestNobodyIsInside(t *testing.T) {
	var g Gate
	var inside atomic.Int64
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			for range 500 {
				if g.Enter(t.Context()) != nil {
					return
				}
				inside.Add(1)
				inside.Add(-1)
				g.Leave()
			}
		})
	}
	for range 2 {
		all.Go(func() {
			for range 200 {
				if _, err := g.Shut(t.Context()); err != nil {
					return
				}
				if n := inside.Load(); n != 0 {
					t.Errorf("%d inside", n)
				}
				g.Open()
			}
		})
	}
	all.Wait()
}

func TestTryEnter(t *testing.T) {
	var g Gate
	if !g.TryEnter() {
		t.Fatal("an open gate let nobody in")
	}
	g.Leave()
	if _, err := g.Shut(t.Context()); err != nil {
		t.Fatal(err)
	}
	if g.TryEnter() {
		t.Fatal("a shut gate let somebody in")
	}
}
