package ttl

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/ebbdb/ebb/internal/clock"
)

// A sweep that tells of each document takes its time (telling.go), and one pass runs at a time. So that others need not wait for it, a
// visit that tells gives way when another collection comes up, and that has a pass of its own before the next visit. Such a
// pass goes around once: what it leaves comes up again at once.

// wayAfter is how long a visit that tells works before it gives way.
const wayAfter = 50 * time.Millisecond

// givesWay says whether a visit of the target that has lasted so long, and could go on, ends for others.
func (p *pass) givesWay(t Target, took time.Duration) bool {
	switch {
	case took < wayAfter:
		return false
	case p.between:
		return true
	case !p.isPrecise():
		return false
	}
	now := clock.Millis(p.clock)
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.mu.agenda.hasDue(now, t.Collection)
}

// atTurn visits a target, and lets others have their turn if there is more to tell.
func (p *pass) atTurn(ctx context.Context, t Target) (more bool, err error) {
	if more, err = p.visit(ctx, t); err != nil {
		return more, err
	}
	if p.unfinished[t] = more; more && p.of(t).telling.documents > 0 {
		err = p.letOthers(ctx)
	}
	return more, err
}

// letOthers runs a pass over the collections that have come up meanwhile, but for those that this one still works at.
func (p *pass) letOthers(ctx context.Context) error {
	if p.between || !p.isPrecise() {
		return nil
	}
	now := clock.Millis(p.clock)
	due := p.takeOthers(now)
	if len(due) == 0 {
		return nil
	}
	q := p.newPass(now, due)
	q.between = true
	err := q.run(ctx)
	if ctx.Err() != nil {
		return err
	}
	err = errors.Join(err, q.planNext(ctx))
	for t, more := range q.unfinished {
		if more {
			p.note(t.Collection, q.at)
		}
	}
	return err
}

// takeOthers are the collections that come up at now or before and that nothing is left of in this pass.
func (p *pass) takeOthers(now int64) (due []uint32) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, collection := range p.mu.agenda.takeDue(now) {
		if p.worksAt(collection) {
			p.mu.agenda.note(collection, now)
			continue
		}
		due = append(due, collection)
	}
	slices.Sort(due)
	return due
}

func (p *pass) worksAt(collection uint32) bool {
	for t, more := range p.unfinished {
		if more && t.Collection == collection {
			return true
		}
	}
	return false
}
