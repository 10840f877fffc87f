package ttl

import (
	"context"
	"time"

	"github.com/ebbdb/ebb/internal/clock"
	"github.com/ebbdb/ebb/internal/storage/sweeper"
)

const (
	// singlyFor is how long documents of a target are deleted one by one before a sweep of all at once is tried again.
	singlyFor = time.Second
	// A sweep that finds the collection's writers busy, which it has held up, is tried so often again, with a pause that
	// begins with busyWait and doubles: one by one it would take longer.
	busyTries = 4
	busyWait  = 10 * time.Millisecond
)

// atOnce deletes everything that is due by a rule that orders its collection, with as little work as that takes. done is
// false when documents are to be deleted one by one: because there are few, or because somebody looks. goesOn
// says that the sweep before it has left some.
func (s *visit) atOnce(ctx context.Context, goesOn bool) (done bool, err error) {
	if !s.mayBeAtOnce(goesOn) {
		return false, nil
	}
	for wait, tries := busyWait, 0; ; wait, tries = 2*wait, tries+1 {
		if err := s.mayDelete(); err != nil {
			return false, err
		}
		done, busy, err := s.tryAtOnce(ctx)
		switch {
		case ctx.Err() != nil:
			return false, context.Cause(ctx)
		case done || err != nil:
			return done, err
		case !busy || tries == busyTries:
			if !goesOn { // or there was nothing left
				s.deleteSingly()
			}
			return false, nil
		}
		if err := s.pacer.wait(ctx, wait); err != nil {
			return false, err
		}
	}
}

func (s *visit) tryAtOnce(ctx context.Context) (done, busy bool, err error) {
	started := s.clock.Now()
	s.noteSweeping(s.target.Collection, true)
	defer func() {
		if !done {
			s.noteSweeping(s.target.Collection, false)
		}
	}()
	swept, ok, err := s.sweepAll(ctx)
	if swept.Uncounted {
		s.noteTask(s.target.Collection, func(c *maintenanceTask) { c.count = true })
	}
	if !ok || err != nil {
		return false, swept.Busy, err
	}
	s.noteSwept(s.target.Collection)
	s.metrics.sweeps.Add(1)
	s.metrics.swept.Add(swept.Documents)
	s.done.Swept += swept.Documents
	took := clock.Since(s.clock, started)
	if s.sweeping = swept.More; swept.More {
		s.progress.telling.did(swept.Documents, took, swept.Left, s.lag())
		s.pacer.didTell(took, s.progress.telling)
	}
	b := batch{examined: int(swept.Documents), deleted: swept.Documents, keys: swept.Keys, bytes: swept.Bytes, batches: 1}
	s.account(b, took)
	s.progress.again()
	return true, false, nil
}

func (s *visit) mayBeAtOnce(goesOn bool) bool {
	if s.careful > 0 || !goesOn && s.sweeper.Few(s.target.Collection, &s.rule, s.at, len(s.progress.staged)) || !s.params.BatchDeletes.Get() || s.recorder.Wants(s.ns.DB) {
		return false
	}
	now := s.clock.Now()
	s.mu.Lock()
	defer s.mu.Unlock()
	a := s.mu.visited[s.target]
	return a == nil || !now.Before(a.singly)
}

func (s *visit) sweepAll(ctx context.Context) (sweeper.Swept, bool, error) {
	if err := s.gate.Enter(ctx); err != nil {
		return sweeper.Swept{}, false, err
	}
	defer s.gate.Leave()
	return s.sweeper.Sweep(ctx, s.target.Collection, &s.rule, s.at)
}

// deleteSingly puts off the next try.
func (s *visit) deleteSingly() {
	until := s.clock.Now().Add(singlyFor)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.accountOf(s.target).singly = until
}
