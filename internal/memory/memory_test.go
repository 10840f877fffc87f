package memory

import (
	"context"
	"errors"
	"math/rand/v2"
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/ebbdb/ebb/internal/clock"
	"github.com/ebbdb/ebb/internal/mongoerr"
)

const mib = 1 << 20

func account(g *Governor, kind Kind) *Account {
	a := &Account{}
	a.Open(g, kind)
	return a
}

func TestWhatIsThereIsGiven(t *testing.T) {
	g := New(32*mib, clock.Wall(), nil)
	a := account(g, Operators)
	if !a.Take(freeBytes) || g.Stats().Used != 0 {
		t.Errorf("a small account asked: %+v", g.Stats())
	}
	if !a.Take(20*mib) || a.Used() != 20*mib+freeBytes || g.Stats().Used < 20*mib {
		t.Errorf("%d of %+v", a.Used(), g.Stats())
	}
	b := account(g, Replies)
	if b.Take(10 * mib) {
		t.Error("a large account had the part of the small ones")
	}
	if !b.Take(3 * mib) {
		t.Error("a small account did not get the last of the memory")
	}
	a.Move(Cursors)
	if s := g.Stats(); s.By[Operators] != 0 || s.By[Cursors] < 20*mib || s.By[Replies] < 2*mib {
		t.Errorf("%+v", s)
	}
	a.Close()
	b.Close()
	if s := g.Stats(); s.Used != 0 || s.By != [kinds]int64{} || s.Peak < 22*mib {
		t.Errorf("%+v", s)
	}
}

// Many who take and give at random never have more together than there is, and leave nothing behind.
func TestSum(t *testing.T) {
	g := New(16*mib, clock.Wall(), nil)
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			a := account(g, Kind(rand.IntN(int(kinds))))
			for range 2000 {
				switch n := rand.Int64N(mib); rand.IntN(4) {
				case 0, 1:
					a.Take(n)
				case 2:
					a.Give(min(n, a.Used()))
				case 3:
					a.Move(Kind(rand.IntN(int(kinds))))
				}
				if s := g.Stats(); s.Used > s.Total || s.Used < 0 {
					t.Errorf("%+v", s)
				}
			}
			a.Close()
		})
	}
	all.Wait()
	if s := g.Stats(); s.Used != 0 || s.By != [kinds]int64{} {
		t.Errorf("%+v", s)
	}
}

func TestNilTakesAll(t *testing.T) {
	for _, a := range []*Account{nil, {}, account(nil, Replies)} {
		if !a.Take(1<<40) || a.Wait(t.Context(), 1<<40) != nil || a.Short() {
			t.Error("refused")
		}
		a.Charge(1)
		a.Move(Cursors)
		a.Close()
	}
}

func TestWaitIsBounded(t *testing.T) {
	fake := clock.NewFake(time.Unix(0, 0))
	g := New(8*mib, fake, nil)
	a, b := account(g, Operators), account(g, Operators)
	if !a.Take(6 * mib) {
		t.Fatal("refused")
	}
	if err := b.Wait(t.Context(), 100*mib); !mongoerr.Is(err, mongoerr.ExceededMemoryLimit) {
		t.Errorf("what there will never be: %v", err)
	}
	waited := make(chan error)
	go func() { waited <- b.Wait(t.Context(), 3*mib) }()
	untilWaiting(fake)
	fake.Advance(MaxWait)
	if err := <-waited; !mongoerr.Is(err, mongoerr.ExceededMemoryLimit) || b.Used() != 0 {
		t.Errorf("%v", err)
	}
	stop := errors.New("stop")
	ctx, cancel := context.WithCancelCause(t.Context())
	go func() { waited <- b.Wait(ctx, 3*mib) }()
	untilWaiting(fake)
	cancel(stop)
	if err := <-waited; err != stop {
		t.Errorf("%v", err)
	}
	go func() { waited <- b.Wait(t.Context(), 3*mib) }()
	untilWaiting(fake)
	a.Close()
	if err := <-waited; err != nil || b.Used() != 3*mib {
		t.Errorf("%v", err)
	}
	if s := g.Stats(); s.Waits != 3 || s.Refusals != 2 || s.Waiting != 0 {
		t.Errorf("%+v", s)
	}
}

// untilWaiting returns when somebody waits for the clock.
func untilWaiting(fake *clock.Fake) {
	for fake.Waiting() == 0 {
		runtime.Gosched()
	}
}

func TestHoldersAreAsked(t *testing.T) {
	g := New(16*mib, clock.Wall(), nil)
	defer g.Close()
	idle, a := account(g, Cursors), account(g, Operators)
	var mu sync.Mutex
	g.OnShortage(func(int64) int64 { return 0 })
	g.OnShortage(func(int64) int64 {
		mu.Lock()
		defer mu.Unlock()
		n := idle.Used()
		idle.Close()
		return n
	})
	mu.Lock()
	idle.Take(13 * mib)
	mu.Unlock()
	if err := a.Wait(t.Context(), 10*mib); err != nil {
		t.Fatal(err)
	}
	g.Close()
	if s := g.Stats(); s.Reclaimed != 13*mib {
		t.Errorf("%+v", s)
	}
}

func BenchmarkTake(b *testing.B) {
	a := account(New(1<<40, clock.Wall(), nil), Operators)
	for b.Loop() {
		a.Take(300)
	}
}
