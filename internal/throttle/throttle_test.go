package throttle

import (
	"math"
	"testing"
	"testing/synctest"
	"time"
)

// TestRest: a rest is in proportion to the work, and bounded.
func TestRest(t *testing.T) {
	for _, c := range []struct {
		rest   Rest
		worked time.Duration
		want   time.Duration
	}{
		{Rest{20, 20 * time.Millisecond}, time.Microsecond, 20 * time.Microsecond},
		{Rest{20, 20 * time.Millisecond}, time.Second, 20 * time.Millisecond},
		{Rest{20, 20 * time.Millisecond}, 0, 0},
		{Rest{20, 20 * time.Millisecond}, -time.Second, 0},
		{Rest{0, time.Second}, time.Second, 0},
		{Rest{-0.5, time.Second}, time.Second, 0},
		{Rest{math.Inf(1), time.Second}, time.Millisecond, time.Second},
		{Rest{math.MaxFloat64, time.Second}, time.Hour, time.Second},
	} {
		if got := c.rest.After(c.worked); got != c.want {
			t.Errorf("%+v after %s: %s, want %s", c.rest, c.worked, got, c.want)
		}
	}
}

// TestStep: work rests until its time has come, or it has to end.
func TestStep(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		quit := make(chan struct{})
		throttle := New(Rest{6, time.Minute})
		synctest.Wait()
		<-time.After(time.Second) // of the bubble's time: the step
		begun := time.Now()
		if !throttle.Step(quit) || time.Since(begun) != 6*time.Second || throttle.Worked() != 0 {
			t.Errorf("rested %s", time.Since(begun))
		}
		<-time.After(time.Hour)
		go func() {
			<-time.After(time.Second)
			close(quit)
		}()
		begun = time.Now()
		if throttle.Step(quit) || time.Since(begun) != time.Second {
			t.Errorf("rested %s, though it had to end", time.Since(begun))
		}
		if throttle.Step(quit) {
			t.Error("goes on though it has to end")
		}
	})
}
