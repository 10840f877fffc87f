package ttl

import (
	"context"
	"errors"
	"slices"

	"github.com/ebbdb/ebb/internal/catalog"
	"github.com/ebbdb/ebb/internal/clock"
	"github.com/ebbdb/ebb/internal/storage"
	"github.com/ebbdb/ebb/internal/ttl/policy"
)

// pass is one pass: a fixed time, and how far each target has come.
type pass struct {
	*Monitor
	at int64
	// scope are the collections to look at, nil for all.
	scope    []uint32
	progress map[Target]*progress
	started  bool
	// unfinished are the targets that the last visit has left something of.
	unfinished map[Target]bool
	// visited are the targets that were, and whether the visit failed.
	visited map[Target]bool
	// between says that it runs between two visits of another pass (letOthers).
	between bool
}

func (m *Monitor) newPass(at int64, scope []uint32) *pass {
	return &pass{Monitor: m, at: at, scope: scope, progress: map[Target]*progress{}, unfinished: map[Target]bool{}, visited: map[Target]bool{}}
}

func (p *pass) cause() string {
	if p.scope == nil {
		return CauseInterval
	}
	return CauseDeadline
}

func (p *pass) of(t Target) *progress {
	if p.progress[t] == nil {
		p.progress[t] = &progress{}
	}
	return p.progress[t]
}

// run goes through sub-passes until one leaves nothing.
func (p *pass) run(ctx context.Context) error {
	if p.hooks.BeforePass != nil {
		p.hooks.BeforePass(p.at)
	}
	defer p.metrics.passes.Add(1)
	for left := true; left; {
		targets, err := p.targets(ctx)
		if err != nil {
			return err
		}
		p.metrics.subPasses.Add(1)
		started := p.clock.Now()
		left, err = goAround(targets,
			func(t Target) (bool, error) { return p.atTurn(ctx, t) },
			func() bool {
				return p.between || clock.Since(p.clock, started) >= seconds(p.params.SubPassTargetSecs.Get())
			})
		if err != nil || p.between {
			return err
		}
	}
	return nil
}

// targets are what there is to sweep, as the catalogue is now.
func (p *pass) targets(ctx context.Context) (targets []Target, err error) {
	err = p.eachCollection(ctx, p.at, p.scope, func(r *storage.Reader) error {
		rules := r.Rules().All()
		if r.Catalog().Options.TTLPaused {
			rules = nil
		}
		for i := range rules {
			targets = append(targets, targetOf(r.Catalog().ID, &rules[i]))
		}
		if p.scope == nil && !p.started {
			p.skipSpecial(r.Catalog())
		}
		return nil
	})
	p.started = true
	return targets, err
}

// skipSpecial takes note of the TTL indexes that never delete anything, because their kind keeps no dates.
func (p *pass) skipSpecial(coll *catalog.Collection) {
	for _, d := range coll.Indexes {
		if _, ok := policy.ForIndex(d); d.TTL && !ok {
			p.metrics.invalidIndexSkips.Add(1)
			p.log.Error("special index can't be used as a TTL index", "namespace", coll.NS.String(), "index", d.Name, "type", d.Kind.String())
		}
	}
}

// eachCollection calls f with a reader of each collection in the scope that has a TTL, in the order of their numbers.
func (m *Monitor) eachCollection(ctx context.Context, now int64, scope []uint32, f func(*storage.Reader) error) error {
	view, err := m.store.ViewAt(ctx, now)
	if err != nil {
		return err
	}
	defer view.Close()
	if scope == nil {
		for _, coll := range view.Catalog().All() {
			if hasTTL(coll) {
				scope = append(scope, coll.ID)
			}
		}
	}
	for _, id := range scope {
		if r, ok := view.CollectionByID(id); ok && hasTTL(r.Catalog()) {
			if err := f(r); err != nil {
				return err
			}
		}
	}
	return nil
}

// upcoming enters into the agenda when each collection of the scope comes up next: for a deadline, or the end of a grace. One whose
// deleting is paused does not.
func (m *Monitor) upcoming(ctx context.Context, now int64, scope []uint32) error {
	m.clearAgenda(scope) // before the view is taken: what is committed after it is noted by its own commit
	return m.eachCollection(ctx, now, scope, func(r *storage.Reader) error {
		if r.Catalog().Options.TTLPaused {
			return nil
		}
		rules := r.Rules().All()
		for i := range rules {
			at, ok, err := r.Dates().Upcoming(&rules[i], now)
			if err != nil {
				return err
			}
			if ok {
				m.note(r.Catalog().ID, at)
			}
			if until, ok := r.GraceUntil(&rules[i]); ok {
				m.note(r.Catalog().ID, until)
			}
		}
		return nil
	})
}

// runScope runs a pass over the scope and plans the next.
func (m *Monitor) runScope(ctx context.Context, scope []uint32) error {
	slices.Sort(scope)
	p := m.newPass(clock.Millis(m.clock), scope)
	if !m.runs() { // looked at after the time was taken: a clock that was turned before it is seen
		return errHeld
	}
	err := p.run(ctx)
	if m.params.Precise.Get() && ctx.Err() == nil {
		err = errors.Join(err, p.planNext(ctx))
	}
	return err
}

// planNext has the collections of the pass come up again: for what is to come, and for what failed.
func (p *pass) planNext(ctx context.Context) error {
	err := p.upcoming(ctx, p.at, p.scope)
	for t, failed := range p.visited {
		p.tried(t, failed, p.at)
	}
	return err
}
