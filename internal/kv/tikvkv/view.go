package tikvkv

import (
	"sync"

	"github.com/ebbdb/ebb/internal/kv/rangetombstone"
)

// view is a moment of the keyspace: the sequence of the youngest commit in it, and a timestamp by which TiKV reads just that. Since one server
// writes, the timestamp of its youngest commit is such a one, and nobody has to ask PD for another. What the tombstones hide is not to be seen.
type view struct {
	sequence, ts uint64
	tombstones   *rangetombstone.Set
}

// views are the one that readers begin with, and those that are still read.
type views struct {
	mu     sync.Mutex // guards the rest
	now    view
	open   map[view]int // how many read it
	oldest uint64       // timestamps below that TiKV may have let go of
}

// publish has readers begin with v from now on.
func (s *views) publish(v view) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.now = v
}

// refresh gives the same commits a later timestamp, unless another commit has become visible meanwhile.
func (s *views) refresh(sequence, ts uint64) (done bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	done = s.now.sequence == sequence && s.now.ts < ts
	if done {
		s.now.ts = ts
	}
	return done
}

func (s *views) sequence() uint64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.now.sequence
}

func (s *views) current() view {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.now
}

func (s *views) time() uint64 { return s.current().ts }

// acquire is the youngest view; release gives it back.
func (s *views) acquire() view {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.open[s.now]++
	return s.now
}

func (s *views) share(v view) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.open[v]++
}

func (s *views) release(v view) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.open[v]--; s.open[v] <= 0 {
		delete(s.open, v)
	}
}

// count is how many views are read.
func (s *views) count() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.open)
}

// isGone says whether TiKV may have let go of what was there at v.
func (s *views) isGone(v view) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return v.ts < s.oldest
}

// raise has views before ts be gone.
func (s *views) raise(ts uint64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.oldest = max(s.oldest, ts)
}

// letGo has what only views before ts need be let go of, but for those from least on that are read. It returns the timestamp up to which.
func (s *views) letGo(ts, least uint64) uint64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	ts = min(ts, s.now.ts)
	for v := range s.open {
		if v.ts >= least {
			ts = min(ts, v.ts)
		}
	}
	s.oldest = max(s.oldest, ts)
	return s.oldest
}
