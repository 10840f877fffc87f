package handover

import (
	"context"
	"sync"
	"sync/atomic"
	"testing"
)

type thing struct {
	Users
	inside atomic.Int64
	over   atomic.Bool
}

// TestHandover has many work with values that give way to one another: nobody is in a value that is over, and all get one in the end.
func TestHandover(t *testing.T) {
	var h Holder[*thing]
	var workers sync.WaitGroup
	for range 8 {
		workers.Go(func() {
			for range 2000 {
				v := h.Enter(t.Context())
				v.inside.Add(1)
				if v.over.Load() {
					t.Error("somebody is in a value that is over")
				}
				v.inside.Add(-1)
				v.Leave()
			}
		})
	}
	done := make(chan struct{})
	go func() { workers.Wait(); close(done) }()
	for {
		v := &thing{}
		h.Put(v)
		select {
		case <-done:
			return
		default:
		}
		<-v.End()
		if v.inside.Load() != 0 {
			t.Fatal("a value has ended with somebody in it")
		}
		v.over.Store(true)
		h.Clear()
	}
}

// TestNobodyEnters: who waits for a value is let go with its context, and a value that has ended lets nobody in.
func TestNobodyEnters(t *testing.T) {
	var h Holder[*thing]
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if v := h.Enter(ctx); v != nil {
		t.Error("there is a value")
	}
	v := &thing{}
	h.Put(v)
	if got := h.TryEnter(); got != v {
		t.Error("it is not let in")
	}
	gone := v.End()
	select {
	case <-gone:
		t.Error("it is gone with somebody in it")
	default:
	}
	if h.TryEnter() != nil || h.Enter(ctx) != nil {
		t.Error("an ended value lets somebody in")
	}
	if h.Current() != v {
		t.Error("it is not the value of the moment")
	}
	v.Leave()
	<-gone
}
