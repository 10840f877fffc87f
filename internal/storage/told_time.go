package storage

import (
	"maps"
	"slices"
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
	return now, hidesUpTo, s.standing.times(s.current.Load().collections)
}

// StandStillAs has time stand still for collections as it does in another store, before that tells of a later time; and go on for others.
func (s *Store) StandStillAs(still map[uint32]int64) {
	if len(still) == 0 && s.standing.count.Load() == 0 {
		return
	}
	current := s.current.Load().collections
	for number, at := range still {
		if c := current[number]; c != nil {
			s.standing.add(c, current)
			c.frozen.Store(at)
		}
	}
	for _, c := range s.standing.collections(current) {
		if _, is := still[c.ID]; !is {
			c.frozen.Store(0)
			s.standing.remove(c)
		}
	}
}

// standing is the collections for which time stands still. A collection is there before its time does. It stands still for a version of a collection, which has gone
// when the rules have changed: nobody takes that back, and it is left out.
type standing struct {
	count atomic.Int64 // how many
	mu    sync.Mutex   // guards all
	all   map[*collection]bool
}

func (s *standing) add(c *collection, current map[uint32]*collection) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.all == nil {
		s.all = map[*collection]bool{}
	}
	s.prune(current)
	s.all[c] = true
	s.count.Store(int64(len(s.all)))
}

func (s *standing) remove(c *collection) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.all, c)
	s.count.Store(int64(len(s.all)))
}

// prune lets go of versions that are none any more. The caller holds mu.
func (s *standing) prune(current map[uint32]*collection) {
	maps.DeleteFunc(s.all, func(c *collection, _ bool) bool { return current[c.ID] != c })
	s.count.Store(int64(len(s.all)))
}

// collections are those that there are.
func (s *standing) collections(current map[uint32]*collection) []*collection {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.prune(current)
	return slices.Collect(maps.Keys(s.all))
}

// times are those at which they stand still, by their numbers; nil where nothing does.
func (s *standing) times(current map[uint32]*collection) map[uint32]int64 {
	if s.count.Load() == 0 {
		return nil
	}
	found := map[uint32]int64{}
	for _, c := range s.collections(current) {
		if frozen := c.frozen.Load(); frozen != 0 {
			found[c.ID] = frozen
		}
	}
	return found
}
