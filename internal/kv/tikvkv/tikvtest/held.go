package tikvtest

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"github.com/tikv/client-go/v2/tikv"
	"github.com/tikv/client-go/v2/tikvrpc"

	"github.com/ebbdb/ebb/internal/clock"
	"github.com/ebbdb/ebb/internal/kv"
)

// HeldBack is the way to a cluster on which commits may be held back, by the clock of the engine.
type HeldBack struct {
	tikv.Client
	Clock *clock.Fake
	held  atomic.Bool
	met   atomic.Int64
}

// Met is how many requests were held back.
func (h *HeldBack) Met() int64 { return h.met.Load() }

// SendRequest is tikv.Client's.
func (h *HeldBack) SendRequest(ctx context.Context, addr string, req *tikvrpc.Request, timeout time.Duration) (*tikvrpc.Response, error) {
	if req.Type == tikvrpc.CmdPrewrite && h.held.Load() {
		h.met.Add(1)
		<-ctx.Done()
		return nil, ctx.Err()
	}
	return h.Client.SendRequest(ctx, addr, req, timeout)
}

// Leave runs f, whose commit is held back until nobody waits for it any more. release lets it arrive, and returns when it is visible.
func (h *HeldBack) Leave(t testing.TB, engine kv.Engine, f func() error) (release func()) {
	t.Helper()
	h.Until(t, func() bool { return engine.Stats().DeletedRanges == 0 }) // whose keys are removed by commits, too
	release = h.Hold(t, engine)
	done := make(chan error, 1)
	go func() { done <- f() }()
	if err := TurnFor(t, h.Clock, FastStep, done); !errors.Is(err, kv.ErrUndetermined) {
		t.Fatalf("of a commit that is held back its writer is told %v", err)
	}
	return release
}

// Hold holds back the commits that come. release lets them arrive, and returns when the first is visible, and others may come.
func (h *HeldBack) Hold(t testing.TB, engine kv.Engine) (release func()) {
	before, _ := engine.Last()
	h.held.Store(true)
	return func() {
		t.Helper()
		h.held.Store(false)
		TurnUntil(t, h.Clock, slowStep, func() bool {
			number, _ := engine.Last()
			return number > before && engine.Stats().Unavailable == ""
		})
	}
}

// Until turns the engine's clock.
func (h *HeldBack) Until(t testing.TB, done func() bool) {
	t.Helper()
	TurnUntil(t, h.Clock, FastStep, done)
}
