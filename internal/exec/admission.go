package exec

import (
	"slices"
	"sync"
	"time"

	"github.com/ebbdb/ebb/internal/clock"
	"github.com/ebbdb/ebb/internal/host"
)

const (
	// tenure is how long an operation keeps its lease while others wait for one.
	tenure = 4 * time.Millisecond
	// leaseTime is how long a lease is good for without being renewed. It is renewed every turnTime; an operation that does
	// not waits for something else than the processor.
	leaseTime = 4 * time.Millisecond
	// maxAdmissionWait is how long an operation waits for a lease at most, as it has to see that it was interrupted.
	maxAdmissionWait = 500 * time.Millisecond
)

// longRunning admits to the processors of this process.
var longRunning = admission{lasts: leaseTime}

// admission lets as many operations work as there are processors, of those that have worked for a while. The others wait in
// line, so that who needs a processor for a moment only has it soon, however many operations are at work: Go's scheduler would
// have him wait for all of them, and longer.
//
// An operation has a lease while it works. One that does not give it back, as it waits for something else, loses it after a moment.
type admission struct {
	lasts time.Duration // leaseTime
	mu    sync.Mutex
	// leases are those that were given and not taken back; some may have expired.
	leases []*lease
	// line has those who wait, the first in front. While there are any, a goroutine looks for expired leases.
	line     []*lease
	watching bool
}

// lease belongs to one operation, or a stage of it. The zero value is none.
type lease struct {
	held           bool // it is one of the admission's leases
	given, expires time.Time
	// granted is closed when the operation waits for its lease no more.
	granted chan struct{}
}

// renew has l for some time more. It waits until it is l's turn.
func (a *admission) renew(l *lease) {
	a.mu.Lock()
	now := clock.Wall().Now()
	if l.held && (len(a.line) == 0 || now.Sub(l.given) < tenure) {
		l.expires = now.Add(a.lasts)
		a.mu.Unlock()
		return
	}
	a.takeBack(l)
	a.fill(now)
	if len(a.line) == 0 && len(a.leases) < host.ProcessorCount() {
		a.give(l, now)
		a.mu.Unlock()
		return
	}
	l.granted = make(chan struct{})
	a.line = append(a.line, l)
	if !a.watching {
		a.watching = true
		go a.watch()
	}
	a.mu.Unlock()

	timer := clock.Wall().NewTimer(maxAdmissionWait)
	defer timer.Stop()
	select {
	case <-l.granted:
	case <-timer.C():
		a.leave(l)
	}
}

// end gives l back.
func (a *admission) end(l *lease) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.takeBack(l)
	if len(a.line) > 0 {
		a.fill(clock.Wall().Now())
	}
}

// fill gives leases to the first in line, as long as there are any. The caller holds the lock.
func (a *admission) fill(now time.Time) {
	for _, l := range a.leases {
		l.held = !now.After(l.expires)
	}
	a.leases = slices.DeleteFunc(a.leases, func(l *lease) bool { return !l.held })
	n := min(len(a.line), max(host.ProcessorCount()-len(a.leases), 0))
	for _, l := range a.line[:n] {
		a.give(l, now)
		close(l.granted)
	}
	a.line = slices.Delete(a.line, 0, n)
}

func (a *admission) give(l *lease, now time.Time) {
	l.held, l.given, l.expires = true, now, now.Add(a.lasts)
	a.leases = append(a.leases, l)
}

func (a *admission) takeBack(l *lease) {
	if i := slices.Index(a.leases, l); i >= 0 {
		a.leases = slices.Delete(a.leases, i, i+1)
	}
	l.held = false
}

// leave takes l, which has waited for long enough, out of the line.
func (a *admission) leave(l *lease) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if i := slices.Index(a.line, l); i >= 0 {
		a.line = slices.Delete(a.line, i, i+1)
	}
}

// watch gives the leases that expire to those in line, as long as there are any.
func (a *admission) watch() {
	for {
		timer := clock.Wall().NewTimer(leaseTime / 2)
		<-timer.C()
		a.mu.Lock()
		a.fill(clock.Wall().Now())
		if len(a.line) == 0 {
			a.watching = false
			a.mu.Unlock()
			return
		}
		a.mu.Unlock()
	}
}
