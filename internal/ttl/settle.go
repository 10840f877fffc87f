package ttl

import (
	"context"
	"time"

	"github.com/ebbdb/ebb/internal/clock"
)

// rhythm is what Settle has to know of a loop. It is guarded by the Monitor's mutex.
type rhythm struct {
	started bool
	// asked counts the signals, heard is how many of them the last plan took into account.
	asked, heard int64
	asleep       bool
	until        time.Duration // by monotonic time
	slept        chan struct{} // closed when the loop falls asleep or ends, and then another
}

func newRhythm() rhythm { return rhythm{slept: make(chan struct{})} }

// settled says whether the loop has nothing to do at the monotonic time. Without a loop there is nothing to wait for.
func (r *rhythm) settled(now time.Duration) bool {
	return !r.started || r.asleep && r.heard == r.asked && now < r.until
}

// plans begins another plan, which takes into account what was asked until now.
func (r *rhythm) plans() { r.asleep, r.heard = false, r.asked }

func (r *rhythm) fallAsleep(until time.Duration) {
	r.asleep, r.until = true, until
	r.tell()
}

func (r *rhythm) end() {
	r.started = false
	r.tell()
}

func (r *rhythm) tell() {
	close(r.slept)
	r.slept = make(chan struct{})
}

// Settle waits until the loops sleep and have nothing to do before their clock moves on or something is written. A test
// that turns a fake clock then knows that everything that was due by now is done.
func (m *Monitor) Settle(ctx context.Context) error {
	m.time.look() // whoever turned the clock has just done so
	for {
		locked := m.gate.Locked() // what the maintenance was about to do waits, and nobody is at it
		m.mu.Lock()
		now := clock.Monotonic(m.clock)
		settled, slept := m.mu.passes.settled(now), m.mu.passes.slept
		if settled { // what passes have left
			settled, slept = locked || m.mu.maintenance.settled(now), m.mu.maintenance.slept
		}
		m.mu.Unlock()
		if settled {
			return nil
		}
		select {
		case <-slept:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}
