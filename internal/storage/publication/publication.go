// Package publication has everybody go over from one version of something to the next at once: the one of the catalogue that belongs to the
// data that can be seen. Who begins to read looks which version is current, takes a snapshot of the data, and asks whether the version is
// still the one; where both change in one commit he waits until both can be seen. It does not know what a version is.
package publication

import (
	"context"
	"sync/atomic"
)

// Versions are the versions, of which one is current. Commits take turns: from Expect to Publish, or until one has failed, only one is on its way.
type Versions[V any] struct {
	current atomic.Pointer[V]
	// coming is current as the commit that is on its way leaves it, and half says that it changes the data too; only who commits touches them.
	// turning is that commit while it becomes visible where it changes the version and the data, and nil most often.
	coming  *V
	half    bool
	turning atomic.Pointer[turn]
}

// turn is a commit that changes the version and the data, while it becomes visible.
type turn struct {
	of   any
	over chan struct{}
}

// Load is the current one.
func (p *Versions[V]) Load() *V { return p.current.Load() }

// Store makes one current, before anybody reads.
func (p *Versions[V]) Store(v *V) { p.current.Store(v) }

// Expect says what the commit that is ordered makes of the version, the current one where it does not change; half says that it changes the
// data too, so that whoever sees one of both sees half of it.
func (p *Versions[V]) Expect(next *V, half bool) { p.coming, p.half = next, half }

// Turn says that the commit's data is about to be seen. The commit goes by of.
func (p *Versions[V]) Turn(of any) {
	if p.half {
		p.turning.Store(&turn{of, make(chan struct{})})
	}
}

// Coming is the version as the commit leaves it.
func (p *Versions[V]) Coming() *V { return p.coming }

// Publish makes what is coming current, when the commit's data can be seen. changed says that it was not.
func (p *Versions[V]) Publish() (was, now *V, changed bool) {
	was, now = p.current.Load(), p.coming
	if was == now {
		return was, now, false
	}
	p.current.Store(now)
	if t := p.turning.Load(); t != nil { // then: whoever sees no turn sees what it was about
		p.end(t)
	}
	return was, now, true
}

// Fail ends the turn of a commit that has failed, if it has one: nobody is to wait for it.
func (p *Versions[V]) Fail(of any) {
	if t := p.turning.Load(); t != nil && t.of == of {
		p.end(t)
	}
}

func (p *Versions[V]) end(t *turn) {
	if p.turning.CompareAndSwap(t, nil) {
		close(t.over)
	}
}

// IsCurrent says whether a version goes with data that was taken just now: no commit that changes both was half to be seen.
func (p *Versions[V]) IsCurrent(v *V) bool { return p.turning.Load() == nil && p.current.Load() == v }

// Await waits until no such commit is on its way.
func (p *Versions[V]) Await(ctx context.Context) error {
	t := p.turning.Load()
	if t == nil {
		return nil
	}
	select {
	case <-t.over:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
