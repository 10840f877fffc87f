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
// Who comes first while a sync runs begins the next group, and is its leader. Before it syncs it waits for those whom the last group has just
// let go: their next commits are in the group too, where otherwise two halves would alternate and sync twice as often. It
// waits for as many as lately took part in two groups that followed each other, and no longer than a sync takes; who commits
// alone is never kept waiting. Clients who commit now and then, at a rate of their own, do not come back soon: waiting for them is in vain, and
// each time that it was twice as many groups do without before another one tries.
type groupCommit struct {
	clock   clock.Clock
	sync    func() error
	syncing sync.Mutex    // held by the group that syncs; guards took
	took    time.Duration // how long the last sync took

	mu struct {
		sync.Mutex
		next     *group // takes in who comes; nil: who comes begins one
		expected int    // how many commit at about the same time; stays while a group gathers
		gathers  bool   // next waits for them
		vain     int    // how many groups in a row have waited in vain, up to maxVain
		hurried  int    // how many groups to come do not wait
		closed   bool
	}
	groups sync.WaitGroup // counts them; begun under mu
}

// maxGather is the longest that a group waits for others. It is for disks that are slow now and then.
const maxGather = 5 * time.Millisecond

// maxVain bounds how many groups do without waiting: so many times twofold.
const maxVain = 6

type group struct {
	done    chan struct{}
	err     error         // set before done is closed
	full    chan struct{} // closed when all who are expected have come
	members int           // guarded by the mutex of groupCommit
}

// wait returns when everything that was applied before is durable.
func (s *groupCommit) wait() error {
	g, first := s.join()
	if g == nil {
		return kv.ErrClosed
	}
	if first {
		s.syncGroup(g)
	}
	<-g.done
	return g.err
}

// join enters the next group. There is none when the groups have been stopped.
func (s *groupCommit) join() (g *group, first bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.mu.closed {
		return nil, false
	}
	if s.mu.next == nil {
		s.mu.next, first = &group{done: make(chan struct{}), full: make(chan struct{})}, true
		s.groups.Add(1)
	}
	g = s.mu.next
	if g.members++; g.members == s.mu.expected && s.mu.gathers {
		close(g.full)
	}
	return g, first
}

// stop lets nobody in any more and waits for those who are.
func (s *groupCommit) stop() {
	s.mu.Lock()
	s.mu.closed = true
	s.mu.Unlock()
	s.groups.Wait()
}

// syncGroup syncs for g, after the group before it.
func (s *groupCommit) syncGroup(g *group) {
	defer s.groups.Done()
	s.syncing.Lock()
	defer s.syncing.Unlock()
	runtime.Gosched()
	s.gather(g)
	members := s.close(g)
	start := s.clock.Now()
	g.err = s.sync()
	s.took = clock.Since(s.clock, start)
	s.expect(members)
	close(g.done) // first: those who waited run before the next group begins
}

// gather waits for those who are expected in g.
func (s *groupCommit) gather(g *group) {
	there, missing := s.beginGather(g)
	if missing == 0 {
		return
	}
	defer s.endGather(g, there, missing)
	late := s.clock.NewTimer(min(s.took, maxGather))
	select {
	case <-g.full:
	case <-late.C():
	}
	late.Stop()
}

// beginGather says how many are in g, and how many are to be waited for.
func (s *groupCommit) beginGather(g *group) (there, missing int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	missing = max(s.mu.expected-g.members, 0)
	if missing > 0 && s.mu.hurried > 0 {
		s.mu.hurried--
		missing = 0
	}
	s.mu.gathers = missing > 0
	return g.members, missing
}

// endGather takes account of whether those came who were waited for: most of them.
func (s *groupCommit) endGather(g *group, there, missing int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if 2*(g.members-there) >= missing {
		s.mu.vain = 0
		return
	}
	s.mu.vain = min(s.mu.vain+1, maxVain)
	s.mu.hurried = 1<<s.mu.vain - 1
}

// close lets nobody else into g.
func (s *groupCommit) close(g *group) (members int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.mu.next, s.mu.gathers = nil, false
	return g.members
}

// expect counts the members of a group that has synced and those who came meanwhile.
func (s *groupCommit) expect(members int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if g := s.mu.next; g != nil {
		members += g.members
	}
	s.mu.expected = members
}
