package pebblekv

import (
	"sync"
	"time"

	"github.com/cockroachdb/pebble/v2"

	"github.com/ebbdb/ebb/internal/clock"
)

// spares keeps iterators of a view that nobody uses for the next who walks there. To make one anew takes all memtables and levels in
// hand; one that is there stands in some table and a block of its index, and often that is where the next walk begins.
//
// An iterator holds on to memtables and tables that flushes and compactions have replaced. So only the view that is shared keeps
// any, until the next commit, and none stays unused for longer than spareTime (spareKeeper).
//
// Invariant: a view that is not shared keeps none, so all are closed before its snapshot is.
type spares struct {
	mu   sync.Mutex // guards all below
	open bool       // the view is shared
	kept []spare    // maxSpares at most
	told chan<- struct{}
}

// spare is an iterator, and where the walk began that it was last used for.
type spare struct {
	it    *pebble.Iterator
	began start
}

// start is what a key begins with.
type start [startLength]byte

const (
	// maxSpares is how many iterators a view keeps: a walk of an index and one of its records for each of a few that read at once.
	maxSpares = 8
	// startLength is how much of the keys is compared to find the spare that was used nearby.
	startLength = 12
	// spareTime is how long a view keeps an iterator: longer than it takes until the next one comes on a busy server, and a moment
	// for files that are waiting to go.
	spareTime = 250 * time.Millisecond
)

func startOf(key []byte) (s start) {
	copy(s[:], key)
	return s
}

// common is how many bytes both begin with.
func (s *start) common(o *start) int {
	n := 0
	for n < len(s) && s[n] == o[n] {
		n++
	}
	return n
}

// begin has the view keep iterators; it is shared from now on. told is told of the first of them.
func (s *spares) begin(told chan<- struct{}) {
	s.mu.Lock()
	s.open, s.told = true, told
	s.mu.Unlock()
}

// take is the iterator that was used nearest to key, nil when none is kept.
func (s *spares) take(key []byte) *pebble.Iterator {
	began := startOf(key)
	s.mu.Lock()
	defer s.mu.Unlock()
	best, most := -1, -1
	for i := range s.kept {
		if n := began.common(&s.kept[i].began); n >= most {
			best, most = i, n
		}
	}
	if best < 0 {
		return nil
	}
	it, last := s.kept[best].it, len(s.kept)-1
	s.kept[best], s.kept[last] = s.kept[last], spare{}
	s.kept = s.kept[:last]
	return it
}

// keep takes it, which is as good as new, and says whether it did.
func (s *spares) keep(it *pebble.Iterator, began start) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.open || len(s.kept) == maxSpares {
		return false
	}
	if s.kept = append(s.kept, spare{it, began}); len(s.kept) == 1 {
		select {
		case s.told <- struct{}{}:
		default:
		}
	}
	return true
}

// end closes what is kept; the view is not shared any more.
func (s *spares) end() { closeSpares(s.drain(true)) }

// drain takes out what is kept.
func (s *spares) drain(ends bool) []spare {
	s.mu.Lock()
	defer s.mu.Unlock()
	kept := s.kept
	s.kept, s.open = nil, s.open && !ends
	return kept
}

// closeSpares has nothing to say: an iterator without an error was kept, and has not read since.
func closeSpares(kept []spare) {
	for _, k := range kept {
		_ = k.it.Close()
	}
}

// spareKeeper closes what views have kept for long.
type spareKeeper struct {
	views *snapshotCache
	clock clock.Clock
	quit  <-chan struct{}
	done  chan struct{}
}

func startSpareKeeper(views *snapshotCache, k clock.Clock, quit <-chan struct{}) *spareKeeper {
	s := &spareKeeper{views: views, clock: k, quit: quit, done: make(chan struct{})}
	go s.run()
	return s
}

// run sleeps for as long as nothing is kept.
func (s *spareKeeper) run() {
	defer close(s.done)
	for {
		select {
		case <-s.quit:
			return
		case <-s.views.spared:
		}
		timer := s.clock.NewTimer(spareTime)
		select {
		case <-s.quit:
			timer.Stop()
			return
		case <-timer.C():
		}
		s.views.closeSpares()
	}
}

// wait waits until it has ended; quit is closed.
func (s *spareKeeper) wait() { <-s.done }
