package storage

import (
	"time"

	"github.com/ebbdb/ebb/internal/throttle"
)

// pace lets writers go first: while some commit, the builder rests for several times as long as it has worked.
type pace struct {
	*throttle.Throttle
	writes int64 // of others, up to the stretch of work under way
}

// stretch is for how long the builder works at least before it looks whether others write.
const stretch = time.Millisecond

func newPace() pace {
	return pace{Throttle: throttle.New(throttle.Rest{Factor: 6, Longest: 50 * time.Millisecond})}
}

// breathe is called every few records.
func (b *Build) breathe() error {
	if b.pace.Worked() < stretch {
		return nil
	}
	if err := b.alive(); err != nil {
		return err
	}
	if writes := b.collection.state.writes.Load(); writes != b.pace.writes {
		b.pace.writes = writes
		if !b.pace.Step(b.ctx.Done()) {
			return b.alive()
		}
		return nil
	}
	b.pace.Yield()
	return nil
}
