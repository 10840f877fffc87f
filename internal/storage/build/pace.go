package build

import (
	"time"

	"github.com/ebbdb/ebb/internal/throttle"
)

// Pace lets writers go first: while some commit, the builder rests for several times as long as it has worked.
type Pace struct {
	throttle *throttle.Throttle
	writes   int64 // of others, up to the stretch of work under way
}

// stretch is for how long the builder works at least before it looks whether others write.
const stretch = time.Millisecond

// NewPace begins work.
func NewPace() Pace {
	return Pace{throttle: throttle.New(throttle.Rest{Factor: 6, Longest: 50 * time.Millisecond})}
}

// Breathe is called every few records: writes is how many commits there have been of others, alive why the build has to end, if it has to.
func (p *Pace) Breathe(writes func() int64, quit <-chan struct{}, alive func() error) error {
	if p.throttle.Worked() < stretch {
		return nil
	}
	if err := alive(); err != nil {
		return err
	}
	if now := writes(); now != p.writes {
		p.writes = now
		if !p.throttle.Step(quit) {
			return alive()
		}
		return nil
	}
	p.throttle.Yield()
	return nil
}
