package tikvkv_test

import (
	"context"
	"errors"
	"runtime"
	"sync/atomic"
	"testing"
	"time"

	"github.com/tikv/client-go/v2/tikv"
	"github.com/tikv/client-go/v2/tikvrpc"

	"github.com/ebbdb/ebb/internal/clock"
	"github.com/ebbdb/ebb/internal/kv"
	"github.com/ebbdb/ebb/internal/kv/tikvkv"
	"github.com/ebbdb/ebb/internal/kv/tikvkv/tikvtest"
	"github.com/ebbdb/ebb/internal/mongoerr"
)

// slowKind is the way to a cluster that does not answer one kind of requests before goOn is closed, and counts commits.
type slowKind struct {
	tikv.Client
	kind             tikvrpc.CmdType
	goOn             chan struct{}
	reached, commits atomic.Int64
}

func (s *slowKind) SendRequest(ctx context.Context, addr string, req *tikvrpc.Request, timeout time.Duration) (*tikvrpc.Response, error) {
	switch req.Type {
	case s.kind:
		s.reached.Add(1)
		select {
		case <-s.goOn:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	case tikvrpc.CmdCommit:
		s.commits.Add(1)
	}
	return s.Client.SendRequest(ctx, addr, req, timeout)
}

// To tell the cluster what it may let go of takes a look at all of its regions, which may last: the lease is renewed meanwhile.
func TestRenewsWhileItCollects(t *testing.T) {
	c := tikvtest.New(t)
	way, fake := &slowKind{Client: c.Client, kind: tikvrpc.CmdScanLock}, clock.NewFake(time.Unix(0, 0))
	e := c.OpenOver(t, way, tikvkv.Options{Clock: fake, Term: 10 * time.Second})
	tikvtest.TurnUntil(t, fake, tikvtest.FastStep, func() bool { return way.reached.Load() > 0 })
	before := way.commits.Load()
	tikvtest.TurnUntil(t, fake, tikvtest.FastStep, func() bool { return way.commits.Load() > before+2 })
	if err := e.Close(); err != nil {
		t.Error(err)
	}
}

// What a server has to read before it can work may last longer than its lease, which is renewed meanwhile.
func TestRenewsWhileItOpens(t *testing.T) {
	c := tikvtest.New(t)
	way, fake := &slowKind{Client: c.Client, kind: tikvrpc.CmdScan, goOn: make(chan struct{})}, clock.NewFake(time.Unix(0, 0))
	opened := make(chan *tikvkv.Engine, 1)
	go func() { opened <- c.OpenOver(t, way, tikvkv.Options{Clock: fake, Term: 10 * time.Second}) }()
	tikvtest.TurnUntil(t, fake, tikvtest.FastStep, func() bool { return way.reached.Load() > 0 })
	before := way.commits.Load()
	tikvtest.TurnUntil(t, fake, tikvtest.FastStep, func() bool { return way.commits.Load() > before+2 })
	close(way.goOn)
	e := <-opened
	if err := put(e, "a", "1"); err != nil {
		t.Error(err)
	}
	if err := e.Close(); err != nil {
		t.Error(err)
	}
}

// A view that has all that was ordered is waited for while a commit is on its way, but no longer than any read is, and no longer than who asks for it wants.
func TestStillEnds(t *testing.T) {
	c := tikvtest.New(t)
	way := &tikvtest.HeldBack{Client: c.Client, Clock: clock.NewFake(time.Unix(0, 0))}
	e := c.OpenOver(t, way, tikvkv.Options{Clock: way.Clock})
	release := way.Hold(t, e)
	wrote := make(chan error, 1)
	go func() { wrote <- put(e, "a", "1") }()
	for way.Met() == 0 {
		runtime.Gosched()
	}
	looked := make(chan error, 1)
	look := func(ctx context.Context) {
		_, err := e.Still(ctx, func() {})
		looked <- err
	}
	killed := mongoerr.New(mongoerr.Interrupted, "operation was interrupted")
	ctx, kill := context.WithCancelCause(t.Context())
	go look(ctx)
	kill(killed) // while the clock stands still
	if err := <-looked; !errors.Is(err, killed) {
		t.Errorf("who is killed while it waits is told %v", err)
	}
	go look(t.Context())
	tikvtest.TurnUntil(t, way.Clock, tikvtest.FastStep, func() bool { return len(looked) > 0 })
	if err := <-looked; mongoerr.From(err).Code != mongoerr.NetworkTimeout {
		t.Errorf("who looks while a commit is not answered is told %v", err)
	}
	tikvtest.TurnUntil(t, way.Clock, tikvtest.FastStep, func() bool { return len(wrote) > 0 })
	release()
	if s, err := e.Still(t.Context(), func() {}); err != nil || s.Close() != nil {
		t.Error(err)
	}
	if err := e.Close(); err != nil {
		t.Error(err)
	}
}

// Who ends gives the lease back, and a renewal that comes just then leaves it so: the next server has it at once.
func TestRenewsNothingGivenBack(t *testing.T) {
	c := tikvtest.New(t)
	first := c.Open(t, tikvkv.Options{})
	if err := tikvkv.Renew(first); err != nil {
		t.Fatal(err)
	}
	if err := tikvkv.GiveBack(first); err != nil {
		t.Fatal(err)
	}
	if err := tikvkv.Renew(first); !errors.Is(err, kv.ErrClosed) {
		t.Errorf("a lease that was given back is renewed: %v", err)
	}
	if err := c.Open(t, tikvkv.Options{}).Close(); err != nil {
		t.Error(err)
	}
	if err := first.Close(); err != nil {
		t.Error(err)
	}
}
