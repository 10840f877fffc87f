package pebblekv

import (
	"time"

	"github.com/ebbdb/ebb/internal/clock"
)

// unsyncedSyncInterval bounds how long an Unsynced commit waits for somebody to ask for its sync: when it has passed twice the
// commit is synced. Those that were asked for, as all should be, cost no sync more.
const unsyncedSyncInterval = time.Second

// syncer syncs the commits that wake it, at most once an interval and only when there are any.
type syncer struct {
	commits  *committer
	clock    clock.Clock
	interval time.Duration
	// patient: what others have synced meanwhile needs no sync, and what came meanwhile waits for another interval.
	patient bool
	pending chan struct{} // holds one: something waits for a sync
	quit    chan struct{}
	done    chan struct{}
}

func startSyncer(c *committer, k clock.Clock, interval time.Duration, patient bool) *syncer {
	s := &syncer{commits: c, clock: k, interval: interval, patient: patient, pending: make(chan struct{}, 1), quit: make(chan struct{}), done: make(chan struct{})}
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
		waits := s.commits.sequence.Load()
		timer := s.clock.NewTimer(s.interval)
		select {
		case <-s.quit:
			timer.Stop()
			s.wake()
			return
		case <-timer.C():
		}
		if s.patient && s.commits.durable.Load() >= waits {
			continue
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
