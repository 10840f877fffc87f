package exec

import (
	"runtime"
	"time"

	"github.com/ebbdb/ebb/internal/clock"
)

const (
	// turnTime is how long an operation works until it lets others have the processor. Go would take it away after 10 ms
	// only, so that a find by _id beside twenty operations at work would wait for a tenth of a second.
	turnTime = time.Millisecond
	// crowded is for how long an operation waits for the processor until it takes it that too many want it. Then it rests
	// besides, each time longer, up to maxRest, until the wait is shorter: so that few want it at a time, and who needs it
	// for a moment only has it soon.
	crowded = 4 * time.Millisecond
	maxRest = 100 * time.Millisecond
	// maxSteps is how many steps, such as documents or comparisons, are taken before the time is looked at: fewer where
	// those take long.
	maxSteps = 256
)

// turns lets others have the processor now and then. The zero value is ready.
type turns struct {
	steps, every int
	since        time.Time
	rest         time.Duration
}

// step is called for every step.
func (t *turns) step() {
	if t.steps++; t.steps > t.every {
		t.look()
	}
}

func (t *turns) look() {
	now := clock.Wall().Now() // it is about real processors
	switch taken := now.Sub(t.since); {
	case taken >= turnTime:
		if taken >= 2*turnTime {
			t.every = t.every / 2
		}
		runtime.Gosched()
		t.pause(clock.Since(clock.Wall(), now))
		t.since = clock.Wall().Now()
	case t.every < maxSteps:
		t.every = 2*t.every + 1
	}
	t.steps = 0
}

// pause rests, after the operation has waited for so long.
func (t *turns) pause(waited time.Duration) {
	switch {
	case waited > crowded:
		t.rest = min(max(2*t.rest, waited), maxRest)
	case waited < crowded/4:
		t.rest /= 2
	}
	if t.rest < turnTime {
		t.rest = 0
		return
	}
	timer := clock.Wall().NewTimer(t.rest)
	defer timer.Stop()
	<-timer.C()
}
