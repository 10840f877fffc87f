package javascript

import (
	"sync/atomic"
	"time"

	"github.com/ebbdb/ebb/internal/clock"
)

// patrol looks at calls every watchEvery while there are any, and now and then while there are none.
type patrol struct {
	look func()
	// idle is how long it rests while there are no calls.
	idle  time.Duration
	calls atomic.Int64
	rests atomic.Bool
	wake  chan struct{} // holds one
	stop  chan struct{}
	over  chan struct{}
}

// startPatrol has look called until end. Time is the machine's: processors and processes live in it.
func startPatrol(idle time.Duration, look func()) *patrol {
	p := &patrol{look: look, idle: idle, wake: make(chan struct{}, 1), stop: make(chan struct{}), over: make(chan struct{})}
	go p.run()
	return p
}

func (p *patrol) begin() {
	p.calls.Add(1)
	if p.rests.Load() {
		select {
		case p.wake <- struct{}{}:
		default:
		}
	}
}

func (p *patrol) finish() { p.calls.Add(-1) }

func (p *patrol) run() {
	defer close(p.over)
	for {
		rest := watchEvery
		if p.calls.Load() == 0 {
			rest = p.idle
			if p.rests.Store(true); p.calls.Load() > 0 { // which began before it could see that there is rest
				rest = watchEvery
			}
		}
		t := clock.Wall().NewTimer(rest)
		select {
		case <-t.C():
		case <-p.wake:
			t.Stop()
		case <-p.stop:
			t.Stop()
			return
		}
		p.rests.Store(false)
		p.look()
	}
}

func (p *patrol) end() {
	close(p.stop)
	<-p.over
}
