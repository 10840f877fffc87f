package ttl

import (
	"context"
	"time"

	"github.com/ebbdb/ebb/internal/clock"
	"github.com/ebbdb/ebb/internal/storage"
)

// How long documents of a target are deleted one by one before a sweep of all at once is tried again: after one that found
// the collection's writers busy, which it has held up, and after one that could not be.
const (
	busyFor  = 250 * time.Millisecond
	unfitFor = time.Second
)

// atOnce deletes everything that is due by a rule that orders its collection, with as little work as that takes. done is
// false when documents are to be deleted one by one: because there are few, or because somebody looks.
func (s *sweep) atOnce(ctx context.Context) (done bool, err error) {
	if !s.mayBeAtOnce() {
		return false, nil
	}
	if err := s.mayDelete(); err != nil {
		return false, err
	}
	started := s.clock.Now()
	swept, ok, err := s.sweepAll(ctx)
	took := clock.Since(s.clock, started)
	s.pacer.did(took, s.lag())
	if err != nil {
		if ctx.Err() != nil {
			err = context.Cause(ctx)
		}
		return false, err
	}
	if !ok {
		s.deleteSingly(swept.Busy)
		return false, nil
	}
	s.noteSwept(s.target.Collection)
	s.metrics.sweeps.Add(1)
	s.metrics.swept.Add(swept.Documents)
	s.done.Swept += swept.Documents
	s.account(batch{examined: int(swept.Documents), deleted: swept.Documents, keys: swept.Keys, bytes: swept.Bytes, batches: 1}, took)
	s.progress.again()
	return true, nil
}

func (s *sweep) mayBeAtOnce() bool {
	if s.careful > 0 || s.store.Few(len(s.progress.staged)) || !s.params.BatchDeletes.Get() || s.recorder.Wants(s.ns.DB) {
		return false
	}
	now := s.clock.Now()
	s.mu.Lock()
	defer s.mu.Unlock()
	a := s.mu.visited[s.target]
	return a == nil || !now.Before(a.singly)
}

func (s *sweep) sweepAll(ctx context.Context) (storage.Swept, bool, error) {
	if err := s.gate.Enter(ctx); err != nil {
		return storage.Swept{}, false, err
	}
	defer s.gate.Leave()
	return s.store.Sweep(ctx, s.target.Collection, &s.rule, s.at)
}

// deleteSingly puts off the next try.
func (s *sweep) deleteSingly(busy bool) {
	wait := unfitFor
	if busy {
		wait = busyFor
	}
	until := s.clock.Now().Add(wait)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.accountOf(s.target).singly = until
}
