package storage

import (
	"sync"
	"sync/atomic"
)

// ToldTime is the store's time, and up to when what has expired is hidden although that lies before it, as those are told who read the same data
// elsewhere. Both stand still as long as anything does here: while rules are about to hide less, nobody hides by the old ones what was not hidden when
// that began, and would come back.
func (s *Store) ToldTime() (now, hidesUpTo int64) {
	now, hidesUpTo = s.Now(), s.options.HidesUpTo()
	// Read behind the time: where nothing stands still yet, whatever comes to stand does so at no earlier time.
	if frozen := s.expiryClock.Frozen(); frozen != 0 {
		now, hidesUpTo = min(now, frozen), min(hidesUpTo, frozen)
	}
	if frozen := s.standing.since(); frozen != 0 {
		now, hidesUpTo = min(now, frozen), min(hidesUpTo, frozen)
	}
	return now, hidesUpTo
}

// standing is the collections for which time stands still. A collection is there before its time does.
type standing struct {
	count atomic.Int64 // how many
	mu    sync.Mutex   // guards all
	all   map[*collection]bool
}

func (s *standing) add(c *collection) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.all == nil {
		s.all = map[*collection]bool{}
	}
	s.all[c] = true
	s.count.Store(int64(len(s.all)))
}

func (s *standing) remove(c *collection) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.all, c)
	s.count.Store(int64(len(s.all)))
}

// since is the first time at which any stands still; 0 where none does.
func (s *standing) since() (first int64) {
	if s.count.Load() == 0 {
		return 0
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for c := range s.all {
		if frozen := c.frozen.Load(); frozen != 0 && (first == 0 || frozen < first) {
			first = frozen
		}
	}
	return first
}
