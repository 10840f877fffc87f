package member

import (
	"context"

	"github.com/ebbdb/ebb/internal/handover"
)

// outgoing are the snapshots on their way to others, which read one store: it is closed when they have ended.
type outgoing struct {
	handover.Users
	ctx    context.Context
	cancel context.CancelFunc
}

func newOutgoing(ctx context.Context) *outgoing {
	ctx, cancel := context.WithCancel(ctx)
	return &outgoing{ctx: ctx, cancel: cancel}
}

// endOutgoing ends the snapshots that are sent, and lets none begin until the store has given way to another: then begin is called.
func (m *member) endOutgoing() (begin func()) {
	o := m.outgoing.Current()
	o.cancel()
	<-o.End()
	return func() { m.outgoing.Put(newOutgoing(m.ctx)) }
}

// both is a context that ends with each of two.
func both(a, b context.Context) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancelCause(a)
	stop := context.AfterFunc(b, func() { cancel(context.Cause(b)) })
	return ctx, func() {
		stop()
		cancel(context.Canceled)
	}
}
