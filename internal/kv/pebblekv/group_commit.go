package pebblekv

import (
	"runtime"
	"sync"
	"time"

	"github.com/ebbdb/ebb/internal/clock"
	"github.com/ebbdb/ebb/internal/kv"
)

// groupCommit lets commits that are applied share syncs: one sync runs at a time, and all that came before it began are durable
// after it.
//
// Who comes first while a sync runs leads the next round. Before it syncs it waits for those whom the last round has just
// let go: their next commits are in the round too, where otherwise two halves would take turns and sync twice as often. It
// waits for as many as lately took part in two rounds that followed each other, and no longer than a sync takes; who commits
// alone is never kept waiting.
type groupCommit struct {
	clock clock.Clock
	sync  func() error
	turn  sync.Mutex    // held by the round that syncs; guards took
	took  time.Duration // how long the last sync took

	mu struct {
		sync.Mutex
		next     *round // takes in who comes; nil: who comes begins one
		expected int    // how many commit at about the same time; stays while a round gathers
		gathers  bool   // next waits for them
		closed   bool
	}
	leading sync.WaitGroup // counts rounds; begun under mu
}

// maxGather is the longest that a round waits for others. It is for disks that are slow now and then.
const maxGather = 5 * time.Millisecond

type round struct {
	done    chan struct{}
	err     error         // set before done is closed
	full    chan struct{} // closed when all who are expected have come
	members int           // guarded by the mutex of groupCommit
}

// wait returns when everything that was applied before is durable.
func (s *groupCommit) wait() error {
	r, leads := s.join()
	if r == nil {
		return kv.ErrClosed
	}
	if leads {
		s.lead(r)
	}
	<-r.done
	return r.err
}

// join enters the next round. There is none when the rounds have been stopped.
func (s *groupCommit) join() (r *round, leads bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.mu.closed {
		return nil, false
	}
	if s.mu.next == nil {
		s.mu.next, leads = &round{done: make(chan struct{}), full: make(chan struct{})}, true
		s.leading.Add(1)
	}
	r = s.mu.next
	if r.members++; r.members == s.mu.expected && s.mu.gathers {
		close(r.full)
	}
	return r, leads
}

// stop lets nobody in any more and waits for those who are.
func (s *groupCommit) stop() {
	s.mu.Lock()
	s.mu.closed = true
	s.mu.Unlock()
	s.leading.Wait()
}

// lead leads r to its end.
func (s *groupCommit) lead(r *round) {
	defer s.leading.Done()
	s.take(r)
}

// take takes the turn for r, and gives it on when it has synced.
func (s *groupCommit) take(r *round) {
	s.turn.Lock()
	defer s.turn.Unlock()
	runtime.Gosched()
	s.gather(r)
	members := s.close(r)
	start := s.clock.Now()
	r.err = s.sync()
	s.took = clock.Since(s.clock, start)
	s.expect(members)
	close(r.done) // first: those who waited run before the next round begins
}

// gather waits for those who are expected in r.
func (s *groupCommit) gather(r *round) {
	s.mu.Lock()
	s.mu.gathers = r.members < s.mu.expected
	wait := s.mu.gathers
	s.mu.Unlock()
	if !wait {
		return
	}
	late := s.clock.NewTimer(min(s.took, maxGather))
	select {
	case <-r.full:
	case <-late.C():
	}
	late.Stop()
}

// close lets nobody else into r.
func (s *groupCommit) close(r *round) (members int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.mu.next, s.mu.gathers = nil, false
	return r.members
}

// expect counts the members of a round that has synced and those who came meanwhile.
func (s *groupCommit) expect(members int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if r := s.mu.next; r != nil {
		members += r.members
	}
	s.mu.expected = members
}
