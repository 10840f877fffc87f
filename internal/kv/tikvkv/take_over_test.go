package tikvkv_test

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/tikv/client-go/v2/tikv"
	"github.com/tikv/client-go/v2/tikvrpc"
	pd "github.com/tikv/pd/client"

	"github.com/ebbdb/ebb/internal/clock"
	"github.com/ebbdb/ebb/internal/kv"
	"github.com/ebbdb/ebb/internal/kv/tikvkv"
	"github.com/ebbdb/ebb/internal/kv/tikvkv/tikvtest"
	"github.com/ebbdb/ebb/internal/mongoerr"
)

// gate is a network on which requests of one server, or their answers, may be held up.
type gate struct {
	tikv.Client
	mu    sync.RWMutex // held while nothing passes
	after atomic.Bool  // it is the answers that are held up
}

func (g *gate) Close() error { return nil }

func (g *gate) SendRequest(ctx context.Context, addr string, req *tikvrpc.Request, timeout time.Duration) (*tikvrpc.Response, error) {
	pass := func() { g.mu.RLock(); defer g.mu.RUnlock() }
	if !g.after.Load() {
		pass()
		return g.Client.SendRequest(ctx, addr, req, timeout)
	}
	reply, err := g.Client.SendRequest(ctx, addr, req, timeout)
	pass()
	return reply, err
}

// TestTakeOvers: servers take a keyspace from one another while each works, because its requests or the answers were held up for longer than the lease lasts.
// What was acknowledged stays, and each finds all of it.
func TestTakeOvers(t *testing.T) {
	c := tikvtest.New(t)
	takeOvers(t, 3, func(g *gate, o tikvkv.Options) (*tikvkv.Engine, error) {
		g.Client = c.Client
		return tikvkv.OpenStore(t.Context(), c.StoreOver(t, g), o)
	})
}

// TestTakeOversOnCluster is the same on a real cluster.
func TestTakeOversOnCluster(t *testing.T) {
	addresses, keyspace := clusterAt(t), fmt.Sprint("take-over-", time.Now().UnixMilli())
	takeOvers(t, 12, func(g *gate, o tikvkv.Options) (*tikvkv.Engine, error) {
		o.PD, o.Keyspace = addresses, keyspace
		return tikvkv.OpenBy(t.Context(), o, func(c pd.Client) pd.Client { return c }, func(c tikv.Client) tikv.Client { g.Client = c; return g })
	})
}

func takeOvers(t *testing.T, rounds int, open func(*gate, tikvkv.Options) (*tikvkv.Engine, error)) {
	const clients = 4
	var acknowledged, unknown [clients]atomic.Int64
	var opened atomic.Int64 // how many servers had the keyspace
	var working sync.WaitGroup
	look := func(e *tikvkv.Engine, i int) int64 {
		for {
			n, err := count(e, i, 0)
			if err == nil {
				return int64(n)
			}
			if _, coded := err.(interface{ Code() mongoerr.Code }); !coded { // the lease is short, and may have run out for a moment
				t.Error(err)
				return 0
			}
			_ = clock.Wait(context.Background(), clock.Wall(), time.Millisecond)
		}
	}
	var last *tikvkv.Engine
	for round := range rounds {
		g := &gate{}
		g.after.Store(round%2 == 1)
		var least [clients]int64
		for i := range clients {
			least[i] = acknowledged[i].Load()
		}
		e, err := open(g, tikvkv.Options{Name: strconv.Itoa(round), Term: time.Second, OnFailure: func(error) {}, Waiting: func(tikvkv.Holder) {}})
		if err != nil {
			t.Fatal(err)
		}
		opened.Add(1)
		for i := range clients {
			if n := look(e, i); n < least[i] {
				t.Fatalf("round %d: counter %d is at %d, and %d were acknowledged", round, i, n, least[i])
			}
		}
		first, _ := e.Last()
		var writing sync.WaitGroup
		for i := range clients {
			writing.Go(func() {
				for {
					_, err := count(e, i, 1)
					switch {
					case err == nil:
						acknowledged[i].Add(1)
						continue
					case errors.Is(err, kv.ErrUndetermined):
						unknown[i].Add(1)
					}
					return
				}
			})
		}
		for number := first; number < first+3; number, _ = e.Last() {
			_ = clock.Wait(context.Background(), clock.Wall(), time.Millisecond)
		}
		if round == rounds-1 {
			last = e
			working.Go(writing.Wait)
			break
		}
		g.mu.Lock() // for longer than the lease lasts: another one has the keyspace then, or is about to take it
		working.Go(func() {
			for { // a lease that was renewed at the last moment is held up once more: nobody else would ever have the keyspace
				_ = clock.Wait(context.Background(), clock.Wall(), time.Duration(1200+round%6*100)*time.Millisecond) // leases live in real time
				g.mu.Unlock()
				if opened.Load() > int64(round)+1 || t.Failed() {
					break
				}
				g.mu.Lock()
			}
			writing.Wait()
			_ = e.Close() // it has lost the keyspace
		})
	}
	if err := last.Close(); err != nil {
		t.Error(err)
	}
	working.Wait()
	e, err := open(&gate{}, tikvkv.Options{})
	if err != nil {
		t.Fatal(err)
	}
	for i := range clients {
		if n, low, high := look(e, i), acknowledged[i].Load(), acknowledged[i].Load()+unknown[i].Load(); n < low || n > high {
			t.Errorf("counter %d is at %d; %d were acknowledged, and of %d nothing is known", i, n, low, high-low)
		}
	}
	if err := e.Close(); err != nil {
		t.Error(err)
	}
}

// count adds by to a counter, as an update of a document does, and returns what it is then.
func count(e kv.Engine, i, by int) (int, error) {
	key := []byte(fmt.Sprint("counter ", i))
	t, err := e.Begin()
	if err != nil {
		return 0, err
	}
	value, err := t.Get(key)
	if errors.Is(err, kv.ErrNotFound) {
		value, err = []byte("0"), nil
	}
	n, bad := strconv.Atoi(string(value))
	if err = errors.Join(err, bad); err != nil || by == 0 {
		t.Rollback()
		return n, err
	}
	t.Claim(key)
	t.SetCached(key, []byte(strconv.Itoa(n+by)))
	return n + by, t.Commit(context.Background(), kv.Synced)
}
