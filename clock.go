package ebb

import (
	"time"

	"github.com/ebbdb/ebb/internal/clock"
)

// Clock is a database's time: dates on the server, the last modification of documents, deadlines, time-outs of cursors and
// sessions. Package ebbtest has one that a test turns.
type Clock interface {
	// Now is the wall time, which may be set forward or back.
	Now() time.Time
	// Read is the wall time, and beside it, read at the same moment, how long the clock has run, which no setting moves. Where the
	// two come apart the wall time was set, and the database waits until it may trust it before it deletes.
	Read() (wall time.Time, monotonic time.Duration)
	// NewTimer returns a timer that fires once when the clock has run for d.
	NewTimer(d time.Duration) Timer
}

// Timer fires once.
type Timer interface {
	// C gets one value when the timer fires.
	C() <-chan time.Time
	// Stop keeps the timer from firing, and says whether it did so in time.
	Stop() bool
}

// givenClock is a Clock for the parts of the server.
type givenClock struct{ Clock }

func (c givenClock) NewTimer(d time.Duration) clock.Timer { return c.Clock.NewTimer(d) }

// recordedClock is one that shows when what is done again was done; only the command line has one.
type recordedClock struct{ givenClock }

func (recordedClock) Recorded() {}

// clockOf is c, or the machine's clock for nil.
func clockOf(c Clock) clock.Clock {
	if c == nil {
		return clock.Wall()
	}
	if _, again := c.(interface{ Recorded() }); again {
		return recordedClock{givenClock{c}}
	}
	return givenClock{c}
}
