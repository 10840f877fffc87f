package pebblekv

import (
	"time"

	"github.com/ebbdb/ebb/internal/clock"
)

// What nobody waits for is done in small steps, with a rest after each that takes restShare times as long as the step did, so
// that others hardly notice.
const (
	restShare = 20
	maxRest   = 20 * time.Millisecond
)

// restFor is how long to rest after a step that began at such a time of the machine's clock: it is about real processors and
// disks.
func restFor(begin time.Time) time.Duration {
	return min(restShare*clock.Since(clock.Wall(), begin), maxRest)
}

// restUntil rests, or does not any more when quit is closed.
func restUntil(quit <-chan struct{}) func(time.Duration) {
	return func(d time.Duration) {
		timer := clock.Wall().NewTimer(d)
		defer timer.Stop()
		select {
		case <-timer.C():
		case <-quit:
		}
	}
}
