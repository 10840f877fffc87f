package main

import (
	"context"
	"errors"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"
)

// operation is one round trip, or the few that belong together.
type operation func(ctx context.Context, r *rand.Rand) error

// A loop is closed: each of its workers does one operation after the other.
type loop struct {
	target       *target
	workers      int
	warm, length time.Duration
}

// looped is what a loop recorded after it was warm.
type looped struct {
	histogram
	usage usage
}

// run ends early with the first error of an operation.
func (l loop) run(ctx context.Context, op operation) (*looped, error) {
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	var recording, finished atomic.Bool
	first := make(chan struct{}) // closed when something is recorded
	var once sync.Once
	parts := make([]histogram, l.workers)
	var crew sync.WaitGroup
	for w := range l.workers {
		crew.Go(func() {
			for r := dice(1000 + w); !finished.Load(); {
				begin := time.Now()
				if err := op(ctx, r); err != nil {
					stop(err)
					return
				}
				if recording.Load() {
					parts[w].add(time.Since(begin))
					once.Do(func() { close(first) })
				}
			}
		})
	}
	pause(ctx, l.warm)
	out := &looped{}
	m := l.target.meter()
	recording.Store(true)
	pause(ctx, l.length)
	select { // on a busy machine nothing may have ended within a short time
	case <-first:
	case <-ctx.Done():
	}
	recording.Store(false)
	out.usage = m.stop()
	finished.Store(true)
	crew.Wait()
	for w := range parts {
		out.merge(&parts[w])
	}
	return out, context.Cause(ctx)
}

func (l *looped) metrics() metrics {
	m := metrics{"ops_s": float64(l.n) / l.usage.wall.Seconds()}
	l.into(m, "")
	l.usage.into(m, l.n)
	return m
}

// maxInFlight bounds the operations that an open loop has under way. One that meets the bound is late, and says so.
const maxInFlight = 1024

// An openLoop begins operations at a fixed rate, however slow the answers are, so that one slow answer counts for all
// that would have come meanwhile.
type openLoop struct {
	rate float64 // operations a second
	late atomic.Int64
}

// run goes on until ctx ends, and waits for what is under way. done is told of each operation when it began, and when it
// ended; of several at one time.
func (o *openLoop) run(ctx context.Context, next func(n int64) func(context.Context) error, done func(begin, end time.Time)) error {
	work, fail := context.WithCancelCause(context.WithoutCancel(ctx))
	defer fail(nil)
	flight := make(semaphore, maxInFlight)
	var crew sync.WaitGroup
	begin := time.Now()
	for n := int64(0); ctx.Err() == nil && work.Err() == nil; n++ {
		op := next(n)
		pause(ctx, time.Until(begin.Add(time.Duration(float64(n)/o.rate*float64(time.Second)))))
		if !flight.take() {
			o.late.Add(1)
			flight <- struct{}{}
		}
		crew.Go(func() {
			start := time.Now()
			if err := op(work); err != nil {
				fail(err)
			} else {
				done(start, time.Now())
			}
			<-flight
		})
	}
	crew.Wait()
	if err := context.Cause(work); err != nil && !errors.Is(err, context.Canceled) {
		return err
	}
	return nil
}

type semaphore chan struct{}

// take does not wait.
func (s semaphore) take() bool {
	select {
	case s <- struct{}{}:
		return true
	default:
		return false
	}
}

// pause ends with ctx.
func pause(ctx context.Context, d time.Duration) {
	if d <= 0 {
		return
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}
