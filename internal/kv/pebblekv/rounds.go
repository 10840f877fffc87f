package pebblekv

import (
	"runtime"
	"sync"
	"time"

	"github.com/ebbdb/ebb/internal/clock"
)

// rounds lets commits that are applied share syncs: one sync runs at a time, and all that came before it began are durable
// after it.
//
// Who comes first while a sync runs leads the next round. Before it syncs it waits for those whom the last round has just
// let go: their next commits are in the round too, where otherwise two halves would take turns and sync twice as often. It
// waits for as many as lately took part in two rounds that followed each other, and no longer than a sync takes; who commits
// alone is never kept waiting.
type rounds struct {
	clock clock.Clock
	sync  func() error
	turn  sync.Mutex    // held by the round that syncs; guards took
	took  time.Duration // how long the last sync took

	mu struct {
		sync.Mutex
		next     *round // takes in who comes; nil: who comes begins one
		expected int    // how many commit at about the same time; stays while a round gathers
		gathers  bool   // next waits for them
	}
}

// maxGather is the longest that a round waits for others. It is for disks that are slow now and then.
const maxGather = 5 * time.Millisecond

type round struct {
	done    chan struct{}
	err     error         // set before done is closed
	full    chan struct{} // closed when all who are expected have come
	members int           // guarded by the mutex of rounds
}

// wait returns when everything that was applied before is durable.
func (s *rounds) wait() error {
	r, leads := s.join()
	if leads {
		s.lead(r)
	}
	<-r.done
	return r.err
}

func (s *rounds) join() (r *round, leads bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.mu.next == nil {
		s.mu.next, leads = &round{done: make(chan struct{}), full: make(chan struct{})}, true
	}
	r = s.mu.next
	if r.members++; r.members == s.mu.expected && s.mu.gathers {
		close(r.full)
	}
	return r, leads
}

func (s *rounds) lead(r *round) {
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
func (s *rounds) gather(r *round) {
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
func (s *rounds) close(r *round) (members int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.mu.next, s.mu.gathers = nil, false
	return r.members
}

// expect counts the members of a round that has synced and those who came meanwhile.
func (s *rounds) expect(members int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if r := s.mu.next; r != nil {
		members += r.members
	}
	s.mu.expected = members
}
