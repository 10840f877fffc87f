package pebblekv

import (
	"github.com/ebbdb/ebb/internal/clock"
)

// syncer syncs Buffered commits, at most once an interval and only when there are any.
type syncer struct {
	commits *committer
	clock   clock.Clock
	pending chan struct{} // holds one: something waits for a sync
	quit    chan struct{}
	done    chan struct{}
}

func startSyncer(c *committer, k clock.Clock) *syncer {
	s := &syncer{commits: c, clock: k, pending: make(chan struct{}, 1), quit: make(chan struct{}), done: make(chan struct{})}
	go s.run()
	return s
}

func (s *syncer) wake() {
	select {
	case s.pending <- struct{}{}:
	default:
	}
}

// stop ends the syncer after a last sync of what waits.
func (s *syncer) stop() error {
	close(s.quit)
	<-s.done
	select {
	case <-s.pending:
		return s.commits.sync()
	default:
		return nil
	}
}

func (s *syncer) run() {
	defer close(s.done)
	for {
		select {
		case <-s.quit:
			return
		case <-s.pending:
		}
		timer := s.clock.NewTimer(bufferedSyncInterval)
		select {
		case <-s.quit:
			timer.Stop()
			s.wake()
			return
		case <-timer.C():
		}
		// Commits that came in meanwhile are covered; one that comes now wakes the next round.
		select {
		case <-s.pending:
		default:
		}
		if err := s.commits.sync(); err != nil {
			return // the failure is noted, and no later commit is let in
		}
	}
}
