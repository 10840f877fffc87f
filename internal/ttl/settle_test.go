package ttl

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/ebbdb/ebb/internal/clock"
	"github.com/ebbdb/ebb/internal/parameter"
)

// halfLocked is a Gate that may have been locked after somebody looked at it and before he entered.
type halfLocked struct {
	Open
	locked bool
}

func (g halfLocked) Locked() bool { return g.locked }

// TestSettleWhileLocked: an maintenance that waits at the gate for the server to be unlocked is not waited for; one that works is.
func TestSettleWhileLocked(t *testing.T) {
	gone, cancel := context.WithCancel(context.Background())
	cancel() // so Settle does not wait
	for _, locked := range []bool{true, false} {
		c := clock.NewFake(time.Unix(0, 0))
		m := &Monitor{clock: c, gate: halfLocked{locked: locked}, time: newTimekeeper(c, NewParameters(parameter.NewRegistry(nil)), nil, func() {})}
		m.mu.passes, m.mu.maintenance = newRhythm(), newRhythm()
		m.mu.passes.started, m.mu.maintenance.started = true, true
		m.mu.passes.fallAsleep(time.Minute)
		m.mu.maintenance.plans() // and does what was due
		if err := m.Settle(gone); (err == nil) != locked {
			t.Errorf("locked %v: %v", locked, err)
		} else if err != nil && !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
	}
}
