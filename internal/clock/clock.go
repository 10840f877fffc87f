// Package clock is the only place that reads time. Everything else is handed a Clock, so that tests can turn time by
// hand. It knows nothing of what the time is for.
package clock

import (
	"context"
	"time"
)

// Clock tells the time and waits for it.
type Clock interface {
	// Now is the wall time, which a step may turn forward or back.
	Now() time.Time
	// Read is the wall time, and beside it, read at the same moment, how long the clock has run: the monotonic time, which no
	// step moves. Where the two come apart, the wall time was turned.
	Read() (wall time.Time, monotonic time.Duration)
	// NewTimer returns a timer that fires once after d, of monotonic time.
	NewTimer(d time.Duration) Timer
}

// Recorded is a Clock that shows when what is done again was done before. It goes by no other clock, and may go back a little: that is no correction.
type Recorded interface {
	Clock
	Recorded()
}

// Timer fires once on its channel.
type Timer interface {
	C() <-chan time.Time
	// Stop keeps the timer from firing and says whether it did so in time.
	Stop() bool
}

// Millis is t as BSON counts dates: milliseconds since the epoch.
func Millis(c Clock) int64 { return c.Now().UnixMilli() }

// Since is the time that has passed on c since t.
func Since(c Clock, t time.Time) time.Duration {
	if _, ok := c.(wall); ok {
		return time.Since(t) // which looks at one of the machine's clocks, not at two
	}
	return c.Now().Sub(t)
}

// Monotonic is how long c has run.
func Monotonic(c Clock) time.Duration {
	if _, ok := c.(wall); ok {
		return time.Since(beginning) // as in Since
	}
	_, monotonic := c.Read()
	return monotonic
}

// Wait waits for d on c or until ctx ends, whose error it then returns.
func Wait(ctx context.Context, c Clock, d time.Duration) error {
	t := c.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C():
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// WithTimeout is context.WithTimeout on c.
func WithTimeout(ctx context.Context, c Clock, d time.Duration) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancelCause(ctx)
	t := c.NewTimer(d)
	go func() {
		select {
		case <-t.C():
			cancel(context.DeadlineExceeded)
		case <-ctx.Done():
			t.Stop()
		}
	}()
	return ctx, func() { cancel(context.Canceled) }
}

// Wall is the machine's clock.
func Wall() Clock { return wall{} }

type wall struct{}

// beginning is where the machine's monotonic time is counted from.
var beginning = time.Now()

func (wall) Now() time.Time { return time.Now() }

func (wall) Read() (time.Time, time.Duration) {
	now := time.Now() // one look at both of the machine's clocks
	return now, now.Sub(beginning)
}

func (wall) NewTimer(d time.Duration) Timer { return wallTimer{time.NewTimer(d)} }

type wallTimer struct{ t *time.Timer }

func (w wallTimer) C() <-chan time.Time { return w.t.C }
func (w wallTimer) Stop() bool          { return w.t.Stop() }
