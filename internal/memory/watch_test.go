package memory

import (
	"context"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/ebbdb/ebb/internal/clock"
	"github.com/ebbdb/ebb/internal/mongoerr"
)

// The nearer the process comes to the machine's memory, the less accounts may have, and holders are asked.
func TestSqueeze(t *testing.T) {
	g := New(100*mib, clock.Wall(), nil)
	defer g.Close()
	asked := make(chan struct{})
	once := sync.OnceFunc(func() { close(asked) })
	g.OnShortage(func(int64) int64 { once(); return 0 })
	a, b := account(g, Operators), account(g, Operators)
	if !a.Take(50 * mib) {
		t.Fatal("there is enough")
	}
	g.squeeze(540*mib, 1000*mib)
	if s := g.Stats(); s.Squeezed != 0 || s.Resident != 540*mib {
		t.Errorf("%+v", s)
	}
	const between = 1000 * mib * (tightShare + fullShare) / 2
	g.squeeze(between, 1000*mib)
	if s := g.Stats(); s.Squeezed < 49*mib || s.Squeezed > 51*mib {
		t.Errorf("%+v", s)
	}
	if b.Take(mib) {
		t.Error("an account got what the process has no room for")
	}
	if !g.isStrangled() || g.isStrangled() {
		t.Error("a denial is told once")
	}
	if !b.Take(freeBytes) {
		t.Error("a small operation did not go on")
	}
	<-asked
	done := make(chan error)
	go func() { done <- b.Wait(context.Background(), mib) }()
	g.squeeze(990*mib, 1000*mib)
	if s := g.Stats(); s.Squeezed != 100*mib {
		t.Errorf("%+v", s)
	}
	g.squeeze(500*mib, 1000*mib) // those who wait get what is there again
	if err := <-done; err != nil {
		t.Error(err)
	}
	g.squeeze(2000*mib, 1000*mib)
	if err := b.Wait(context.Background(), 8*mib); mongoerr.From(err).Code != mongoerr.ExceededMemoryLimit {
		t.Error(err)
	}
}

// Watch looks until the Governor is closed.
func TestWatch(t *testing.T) {
	g := New(100*mib, clock.Wall(), nil)
	looked := make(chan struct{})
	var n atomic.Int64
	g.Watch(func() int64 {
		if n.Add(1) == 2 {
			close(looked)
		}
		return mib
	}, 1000*mib)
	<-looked
	g.Close()
	after := n.Load()
	if s := g.Stats(); s.Resident != mib || n.Load() != after {
		t.Errorf("%+v", s)
	}
}
