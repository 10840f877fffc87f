// Package expiryclock is the clock by which what has expired is hidden. It is the store's, unless it is held, or stands still for a moment
// because rules change.
package expiryclock

import (
	"math"
	"sync/atomic"
)

// NotHeld is the time at which nothing stands still.
const NotHeld = math.MaxInt64

// Clock tells up to which time what has expired is hidden. All times are in milliseconds since the epoch.
type Clock struct {
	now    func() int64
	upTo   func() int64
	all    func() bool
	hold   atomic.Int64 // where it stands still, NotHeld when it goes on
	frozen atomic.Int64 // where it stands still for readers for a moment, 0 when it does not
}

// New is a clock that goes on. upTo is a time up to which what has expired is hidden although now lies behind it; all says whether every
// TTL index hides.
func New(now, upTo func() int64, all func() bool) *Clock {
	c := &Clock{now: now, upTo: upTo, all: all}
	c.hold.Store(NotHeld)
	return c
}

// State is what a view has to know of the clock, and of the server's ttlHideExpired.
type State struct {
	// All says whether every TTL index hides.
	All bool
	// Frozen is the time after which nothing becomes hidden any more, or 0.
	Frozen int64
}

// State is read before the snapshot of a view is taken, and frozen before all: so a view that hides nothing by the parameter
// has a snapshot in which what was hidden is deleted, and one that does not know that time stands still is older than that.
func (c *Clock) State() State {
	frozen := c.frozen.Load()
	if hold := c.hold.Load(); hold != NotHeld && (frozen == 0 || hold < frozen) {
		frozen = hold
	}
	return State{c.all(), frozen}
}

// Time is up to when what has expired is hidden at the moment.
func (c *Clock) Time() int64 { return min(max(c.now(), c.upTo()), c.hold.Load()) }

// Held is where the clock stands still; ok is false when it goes on.
func (c *Clock) Held() (millis int64, ok bool) {
	millis = c.hold.Load()
	return millis, millis != NotHeld
}

// Hold has it stand still at a time, or go on at NotHeld, and returns what was.
func (c *Clock) Hold(millis int64) (before int64) { return c.hold.Swap(millis) }

// freezeTries bounds how often Freeze looks at a clock that goes on.
const freezeTries = 100

// Freeze has time stand still for those who look at it: at the present, so that nobody who does not see it has a later now.
func (c *Clock) Freeze(at *atomic.Int64) {
	for range freezeTries {
		now := c.Time()
		if at.Store(now); c.Time() == now {
			return
		}
	}
}

// FreezeAll has it stand still for all readers until thaw is called.
func (c *Clock) FreezeAll() (thaw func()) {
	c.Freeze(&c.frozen)
	return func() { c.frozen.Store(0) }
}

// Frozen is where it stands still by FreezeAll, 0 where it does not.
func (c *Clock) Frozen() int64 { return c.frozen.Load() }
