package ebbtest

import (
	"time"

	"github.com/ebbdb/ebb"
	"github.com/ebbdb/ebb/internal/clock"
)

// Clock is a clock that moves only when told. It is the database's of a Server; it may be given to ebb.Open as well.
type Clock struct{ fake *clock.Fake }

var _ ebb.Clock = (*Clock)(nil)

// NewClock returns a clock that stands at start.
func NewClock(start time.Time) *Clock { return &Clock{clock.NewFake(start)} }

// Now is where the clock stands.
func (c *Clock) Now() time.Time { return c.fake.Now() }

// Read is where the clock stands, and how far Advance has moved it.
func (c *Clock) Read() (wall time.Time, monotonic time.Duration) { return c.fake.Read() }

// NewTimer returns a timer that fires when Advance passes its time.
func (c *Clock) NewTimer(d time.Duration) ebb.Timer { return c.fake.NewTimer(d) }

// Advance is time that passes: it moves the clock by d, and fires the timers it passes. It does not wait for what follows
// from that, as the Server's does.
func (c *Clock) Advance(d time.Duration) { c.fake.Advance(d) }

// Step sets the wall time ahead by d, or back when it is negative: no time passes, and no timer fires.
func (c *Clock) Step(d time.Duration) { c.fake.Step(d) }

// Waiting is the number of timers that have not fired.
func (c *Clock) Waiting() int { return c.fake.Waiting() }
