package pebblekv

import (
	"runtime"

	"sync"
)

// rounds lets commits that are applied share syncs: one sync runs at a time, and all that came before it began are durable
// after it.
//
// Who comes first while a sync runs leads the next round. Before it syncs it lets everybody run who can, those whom the last
// round has just let go among them: on a busy machine their next commits are in the round too, where otherwise two halves
// would take turns and sync twice as often. On an idle one nobody is waited for.
type rounds struct {
	sync func() error
	turn sync.Mutex // held by the round that syncs

	mu struct {
		sync.Mutex
		next *round // takes in who comes; nil: who comes begins one
	}
}

type round struct {
	done chan struct{}
	err  error // set before done is closed
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
		s.mu.next, leads = &round{done: make(chan struct{})}, true
	}
	return s.mu.next, leads
}

func (s *rounds) lead(r *round) {
	s.turn.Lock()
	runtime.Gosched()
	s.mu.Lock()
	s.mu.next = nil
	s.mu.Unlock()
	r.err = s.sync()
	close(r.done) // first: those who waited run before the next round begins
	s.turn.Unlock()
}
