package storage

import (
	"runtime"
	"time"

	"github.com/ebbdb/ebb/internal/clock"
)

// pace lets writers go first: while some commit, the builder rests for several times as long as it has worked. It measures
// the machine's time, whatever the store's clock says.
type pace struct {
	clock  clock.Clock
	begun  time.Time // of the current stretch of work
	writes int64     // of others, up to then
}

const (
	// stretch is for how long the builder works at least before it looks whether others write.
	stretch = time.Millisecond
	// restFactor is how many times as long it rests if they do, and maxRest for how long at most.
	restFactor = 6
	maxRest    = 50 * time.Millisecond
)

func newPace() pace {
	wall := clock.Wall()
	return pace{clock: wall, begun: wall.Now()}
}

// breathe is called every few records.
func (b *Build) breathe() error {
	worked := clock.Since(b.pace.clock, b.pace.begun)
	if worked < stretch {
		return nil
	}
	if err := b.alive(); err != nil {
		return err
	}
	if writes := b.collection.state.writes.Load(); writes != b.pace.writes {
		b.pace.writes = writes
		if clock.Wait(b.ctx, b.pace.clock, min(restFactor*worked, maxRest)) != nil {
			return b.alive()
		}
	} else {
		runtime.Gosched()
	}
	b.pace.begun = b.pace.clock.Now()
	return nil
}
