package operation

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/ebbdb/ebb/internal/clock"
	"github.com/ebbdb/ebb/internal/mongoerr"
)

var errGone = errors.New("the client is gone")

func started(t *testing.T) (*Registry, *Operation, context.Context, context.CancelCauseFunc) {
	t.Helper()
	parent, cancel := context.WithCancelCause(t.Context())
	r, o := NewRegistry(clock.NewFake(time.Unix(1, 0))), &Operation{}
	return r, o, r.Start(parent, o), cancel
}

func TestScopeEndsWithItsParent(t *testing.T) {
	for _, waited := range []bool{false, true} {
		_, _, ctx, cancel := started(t)
		if ctx.Err() != nil {
			t.Fatal(ctx.Err())
		}
		if waited {
			ctx.Done()
		}
		cancel(errGone)
		<-ctx.Done()
		if ctx.Err() != context.Canceled || context.Cause(ctx) != errGone {
			t.Errorf("waited for: %v: %v, %v", waited, ctx.Err(), context.Cause(ctx))
		}
	}
}

func TestScopeEndsWhenKilled(t *testing.T) {
	r, o, ctx, _ := started(t)
	child, stop := context.WithCancel(ctx)
	defer stop()
	if !r.Kill(o.ID) || !o.Killed() {
		t.Fatal("there is nothing to kill")
	}
	<-child.Done()
	if e := mongoerr.From(context.Cause(child)); e.Code != mongoerr.Interrupted || ctx.Err() == nil {
		t.Errorf("%v, %v", e, ctx.Err())
	}
}

func TestScopeEndsWithItsOperation(t *testing.T) {
	for _, waited := range []bool{false, true} {
		r, o, ctx, _ := started(t)
		if waited {
			ctx.Done()
		}
		r.Finish(o)
		if ctx.Err() != context.Canceled {
			t.Errorf("waited for: %v: %v", waited, ctx.Err())
		}
		<-ctx.Done()
		o.Kill(errGone) // too late to be the cause
		if context.Cause(ctx) != context.Canceled {
			t.Error(context.Cause(ctx))
		}
	}
}

func TestScopeIsWaitedForAndEndedAtOnce(t *testing.T) {
	for range 1000 {
		r, o, ctx, _ := started(t)
		var all sync.WaitGroup
		for range 2 {
			all.Go(func() { <-ctx.Done() })
		}
		all.Go(func() { r.Finish(o) })
		all.Wait()
	}
}
