package clock

import (
	"sync/atomic"
	"time"
)

// Turned is a clock whose wall time is off by what it was told, as that of a machine that was set wrong. Its timers and its monotonic time
// are those of the clock under it.
type Turned struct {
	Clock
	offset atomic.Int64
}

// NewTurned returns a clock that shows what c does, until it is turned.
func NewTurned(c Clock) *Turned { return &Turned{Clock: c} }

// Turn has the wall time be off by d from now on.
func (t *Turned) Turn(d time.Duration) { t.offset.Store(int64(d)) }

// Now is the wall time.
func (t *Turned) Now() time.Time {
	// Without the monotonic reading: who subtracts two of these times gets what a clock on the wall shows.
	return t.Clock.Now().Add(time.Duration(t.offset.Load())).Round(0)
}

// Read is the wall time, and the monotonic time of the clock under it.
func (t *Turned) Read() (time.Time, time.Duration) {
	wall, monotonic := t.Clock.Read()
	return wall.Add(time.Duration(t.offset.Load())).Round(0), monotonic
}
