package storage

import (
	"sync"
	"sync/atomic"
)

// ToldTime is the store's time, and up to when what has expired is hidden although that lies before it, as those are told who read the same data
// elsewhere. Both stand still as long as all does here; and of some collections at some times (still) alone. So while rules are about to hide less, nobody hides by
// the old ones what was not hidden when that began, and would come back.
func (s *Store) ToldTime() (now, hidesUpTo int64, still map[uint32]int64) {
	now, hidesUpTo = s.Now(), s.options.HidesUpTo()
	// Read behind the time: where nothing stands still yet, whatever comes to stand does so at no earlier time.
	if frozen := s.expiryClock.Frozen(); frozen != 0 {
		now, hidesUpTo = min(now, frozen), min(hidesUpTo, frozen)
	}
	return now, hidesUpTo, s.standing.times()
}

// StandStillAs has time stand still for collections as it does in another store, before that tells of a later time; and go on for others.
func (s *Store) StandStillAs(still map[uint32]int64) {
	if len(still) == 0 && s.standing.count.Load() == 0 {
		return
	}
	v := s.current.Load()
	for number, at := range still {
		if c := v.collections[number]; c != nil {
			s.standing.add(c)
			c.frozen.Store(at)
		}
	}
	for number, c := range s.standing.collections() {
		if _, is := still[number]; !is {
			c.frozen.Store(0)
			s.standing.remove(c)
		}
	}
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

// collections are those, by number.
func (s *standing) collections() map[uint32]*collection {
	s.mu.Lock()
	defer s.mu.Unlock()
	found := map[uint32]*collection{}
	for c := range s.all {
		found[c.ID] = c
	}
	return found
}

// times are those at which they stand still; nil where nothing does.
func (s *standing) times() map[uint32]int64 {
	if s.count.Load() == 0 {
		return nil
	}
	found := map[uint32]int64{}
	for number, c := range s.collections() {
		if frozen := c.frozen.Load(); frozen != 0 {
			found[number] = frozen
		}
	}
	return found
}
