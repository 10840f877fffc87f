package tikvtest

import (
	"testing"
	"time"

	"github.com/ebbdb/ebb/internal/clock"
)

const (
	// FastStep is what a clock is turned by as a rule, slowStep while a commit is to get through, whose attempts end by it.
	FastStep = 20 * time.Millisecond
	slowStep = time.Millisecond
	// turnLimit is how long a clock is turned, by the machine's, for what does not come: a test that fails says more than one that hangs.
	turnLimit = 2 * time.Minute
)

// TurnUntil turns a clock by steps until something is done.
func TurnUntil(t testing.TB, c *clock.Fake, step time.Duration, done func() bool) {
	t.Helper()
	for began := clock.Wall().Now(); !done(); {
		if clock.Wall().Now().Sub(began) > turnLimit {
			t.Fatalf("what is waited for has not come in %v", turnLimit)
		}
		c.Advance(step)
		if err := clock.Wait(t.Context(), clock.Wall(), time.Millisecond/4); err != nil {
			t.Fatal(err)
		}
	}
}

// TurnFor turns a clock by steps until something comes.
func TurnFor[T any](t testing.TB, c *clock.Fake, step time.Duration, from <-chan T) (came T) {
	t.Helper()
	TurnUntil(t, c, step, func() bool {
		select {
		case came = <-from:
			return true
		default:
			return false
		}
	})
	return came
}
