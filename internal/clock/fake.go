package clock

import (
	"sync"
	"time"
)

// Fake is a clock that moves only when told.
type Fake struct {
	mu struct {
		sync.Mutex
		now    time.Time
		ran    time.Duration // monotonic: what Advance has added up to
		timers []*fakeTimer
	}
}

// NewFake returns a clock that stands at start.
func NewFake(start time.Time) *Fake {
	f := &Fake{}
	f.mu.now = start
	return f
}

// Now is where the clock stands.
func (f *Fake) Now() time.Time {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.mu.now
}

// Read is where the clock stands, and how far Advance has moved it.
func (f *Fake) Read() (time.Time, time.Duration) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.mu.now, f.mu.ran
}

// NewTimer returns a timer that fires when Advance passes its time.
func (f *Fake) NewTimer(d time.Duration) Timer {
	f.mu.Lock()
	defer f.mu.Unlock()
	t := &fakeTimer{clock: f, at: f.mu.ran + d, c: make(chan time.Time, 1)}
	if d <= 0 {
		t.c <- f.mu.now
		return t
	}
	f.mu.timers = append(f.mu.timers, t)
	return t
}

// Advance is time that passes: it moves the clock by d, and fires the timers it passes. Time does not pass backwards: below
// zero it is a Step.
func (f *Fake) Advance(d time.Duration) {
	if d < 0 {
		f.Step(d)
		return
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.mu.now = f.mu.now.Add(d)
	f.mu.ran += d
	kept := f.mu.timers[:0]
	for _, t := range f.mu.timers {
		if t.at > f.mu.ran {
			kept = append(kept, t)
		} else {
			t.c <- f.mu.now
		}
	}
	f.mu.timers = kept
}

// Step turns the wall time by d, forward or back, as who sets a machine's clock does: no time passes, and no timer fires.
func (f *Fake) Step(d time.Duration) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.mu.now = f.mu.now.Add(d)
}

type fakeTimer struct {
	clock *Fake
	at    time.Duration
	c     chan time.Time
}

func (t *fakeTimer) C() <-chan time.Time { return t.c }

func (t *fakeTimer) Stop() bool {
	t.clock.mu.Lock()
	defer t.clock.mu.Unlock()
	for i, o := range t.clock.mu.timers {
		if o == t {
			t.clock.mu.timers = append(t.clock.mu.timers[:i], t.clock.mu.timers[i+1:]...)
			return true
		}
	}
	return false
}
