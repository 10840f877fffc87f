// Package throttle has work that nobody waits for leave the machine to others: it is done in small steps, with a rest after each
// that is so many times as long as the step was. It does not know what the work is, nor who the others are.
package throttle

import (
	"time"

	"github.com/ebbdb/ebb/internal/clock"
	"github.com/ebbdb/ebb/internal/yield"
)

// Rest is how long work rests after a step: Factor times as long as the step took, and no longer than Longest.
type Rest struct {
	Factor  float64
	Longest time.Duration
}

// After is the rest after a step that took so long.
func (r Rest) After(worked time.Duration) time.Duration {
	if worked <= 0 || r.Factor <= 0 {
		return 0
	}
	return time.Duration(min(float64(worked)*r.Factor, float64(r.Longest)))
}

// Wait rests; goOn is false as soon as quit is closed.
func Wait(quit <-chan struct{}, rest time.Duration) (goOn bool) {
	timer := clock.Wall().NewTimer(rest)
	defer timer.Stop()
	select {
	case <-timer.C():
	case <-quit:
	}
	select {
	case <-quit:
		return false
	default:
		return true
	}
}

// Throttle makes one line of work rest. It measures the machine's time, whatever the database's clock says: rests are about real
// processors and disks.
type Throttle struct {
	rest  Rest
	begun time.Time // of the step under way
}

// New begins the first step.
func New(r Rest) *Throttle {
	t := &Throttle{rest: r}
	t.begin()
	return t
}

func (t *Throttle) begin() { t.begun = clock.Wall().Now() }

// Worked is how long the step under way has taken.
func (t *Throttle) Worked() time.Duration { return clock.Since(clock.Wall(), t.begun) }

// Step ends the step under way, rests, and begins the next; goOn is false as soon as quit is closed.
func (t *Throttle) Step(quit <-chan struct{}) (goOn bool) {
	goOn = Wait(quit, t.rest.After(t.Worked()))
	t.begin()
	return goOn
}

// Yield ends the step under way where there is nobody to rest for, and begins the next when all who waited for a processor have
// had their turn.
func (t *Throttle) Yield() {
	yield.Now()
	t.begin()
}
