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

// NewTimer returns a timer that fires when Advance or Set passes its time.
func (f *Fake) NewTimer(d time.Duration) Timer {
	f.mu.Lock()
	defer f.mu.Unlock()
	t := &fakeTimer{clock: f, at: f.mu.now.Add(d), c: make(chan time.Time, 1)}
	if d <= 0 {
		t.c <- f.mu.now
		return t
	}
	f.mu.timers = append(f.mu.timers, t)
	return t
}

// Advance moves the clock by d and fires the timers it passes.
func (f *Fake) Advance(d time.Duration) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.set(f.mu.now.Add(d))
}

// Set moves the clock to t, backwards too.
func (f *Fake) Set(t time.Time) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.set(t)
}

func (f *Fake) set(now time.Time) {
	f.mu.now = now
	kept := f.mu.timers[:0]
	for _, t := range f.mu.timers {
		if t.at.After(now) {
			kept = append(kept, t)
		} else {
			t.c <- now
		}
	}
	f.mu.timers = kept
}

type fakeTimer struct {
	clock *Fake
	at    time.Time
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
