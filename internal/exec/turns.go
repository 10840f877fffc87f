package exec

import (
	"time"

	"github.com/ebbdb/ebb/internal/clock"
	"github.com/ebbdb/ebb/internal/yield"
)

const (
	// turnTime is how long an operation works until it lets others have the processor. Go would take it away after 10 ms
	// only, so that a find by _id beside twenty operations at work would wait for a tenth of a second.
	turnTime = time.Millisecond
	// freeTime is how long it works until it needs to be admitted; most are over before.
	freeTime = 10 * time.Millisecond
	// maxSteps is how many steps, such as documents or comparisons, are taken before the time is looked at: fewer where
	// those take long.
	maxSteps = 256
)

// turns lets others have the processor now and then. The zero value is ready. Whoever works in one goroutine has one.
type turns struct {
	steps, every int
	since        time.Time
	worked       time.Duration
	// lease is nil until the operation has worked for its freeTime.
	lease *lease
}

// step is called for every step.
func (t *turns) step() {
	if t.steps++; t.steps > t.every {
		t.look()
	}
}

func (t *turns) look() {
	now := clock.Wall().Now() // it is about real processors
	if t.since.IsZero() {
		t.since = now
	}
	switch taken := now.Sub(t.since); {
	case taken >= turnTime:
		if taken >= 2*turnTime {
			t.every = t.every / 2
		}
		t.worked += taken
		yield.Now()
		if t.worked >= freeTime {
			if t.lease == nil {
				t.lease = &lease{}
			}
			longRunning.renew(t.lease)
		}
		t.since = clock.Wall().Now()
	case t.every < maxSteps:
		t.every = 2*t.every + 1
	}
	t.steps = 0
}

// rest is called when no step will follow soon.
func (t *turns) rest() {
	if t.lease != nil {
		longRunning.end(t.lease)
	}
	t.since = time.Time{}
}
