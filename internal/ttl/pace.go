package ttl

import (
	"context"
	"math"
	"sync"
	"time"

	"github.com/ebbdb/ebb/internal/clock"
	"github.com/ebbdb/ebb/internal/host"
	"github.com/ebbdb/ebb/internal/throttle"
	"github.com/ebbdb/ebb/internal/yield"
)

// What sweeps do beside clients they do with what clients leave. Between two transactions the pacer says how long to rest,
// from how busy the machine was in the last window: of what is spare a sweep takes the part that is spare. So with half of
// two processors busy it has half of one, with all of them busy the least there is, and when nobody asks for anything it
// never rests.
//
// The least grows with lag: twofold with each hurryDoubling, up to hurried, so that what is more than a second's work of small
// steps is not put off for long by clients who never pause; and beyond that twofold with each lagDoubling, up to a whole
// processor: a backlog shrinks at last, whatever the load. Beside that a share has no memory, and rests are short, so that a
// sweep catches up as soon as it is quiet.
//
// What is measured includes the compactions that sweeps cause, which count as load; they shall not pile up either.

// load is what was measured in one window.
type load struct {
	window time.Duration
	// operations is how many operations of clients began in it.
	operations int64
	// processors is how many the process may use, used what it has used of them, our own work included.
	processors int
	used       time.Duration
	// idle is what nobody used of all processors of the machine; negative when unknown.
	idle time.Duration
	// worked is how long background work itself was at it.
	worked time.Duration
}

// spare is how many processors background work could have, those included that it has already.
func (l load) spare() float64 {
	all := time.Duration(l.processors) * l.window
	left := all - l.used
	if l.idle >= 0 {
		left = min(left, l.idle)
	}
	left = max(left, 0)
	return (float64(left) + l.had(float64(left)/float64(all))) / float64(l.window)
}

// crowded is from which part of the processors left on down work is taken to have waited for them.
const crowded = 0.1

// had is the processor time that the background work had: of the time it was at it all, or where next to nothing is left
// over as little as half, since it waited meanwhile. Nobody tells; but if all were counted, a sweep that fills a machine
// would find that it may.
func (l load) had(left float64) float64 {
	return float64(l.worked) * min(max(left/crowded, 0.5), 1)
}

// share is which part of one processor background work may have.
func (l load) share() float64 {
	if l.operations <= 0 || l.window <= 0 || l.processors <= 0 {
		return 1
	}
	spare := l.spare()
	return min(spare*spare/float64(l.processors), 1)
}

const (
	// hurryDoubling is the lag with which the least share grows twofold, up to hurried.
	hurryDoubling = 500 * time.Millisecond
	hurried       = 0.5
	// lagDoubling is the lag with which it does without that bound.
	lagDoubling = 10 * time.Second
)

// atLeast is the least share of work that lags behind so much.
func atLeast(share, least float64, lag time.Duration) float64 {
	soon, late := grown(least, lag, hurryDoubling), grown(least, lag, lagDoubling)
	return min(max(share, min(soon, hurried), late), 1)
}

// grown is the share after so much lag, where it doubles with each doubling.
func grown(share float64, lag, doubling time.Duration) float64 {
	return share * math.Exp2(max(lag, 0).Seconds()/doubling.Seconds())
}

// restFor is how long to rest after so much work, to have the share.
func restFor(worked time.Duration, share float64) time.Duration {
	return throttle.Rest{Factor: 1/share - 1, Longest: longestRest}.After(worked)
}

// loadWindow is for how long the load is measured: the machine counts in hundredths of a second.
const loadWindow = 100 * time.Millisecond

// meter measures the load, for all that work in the background.
type meter struct {
	// look reads figures that only grow.
	look func() reading
	mu   struct {
		sync.Mutex
		begun  time.Time // of the window under way; zero before the first
		first  reading   // at its beginning
		worked time.Duration
		share  float64 // by the window before
		asked  bool    // whether clients began operations in it, or nothing is known of it
	}
}

type reading struct {
	host.Processors
	operations int64 // that clients have begun
}

// note adds to the work of the window under way, and says which share the next may have.
func (m *meter) note(now time.Time, worked time.Duration) float64 {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.mu.worked += max(worked, 0)
	window := now.Sub(m.mu.begun)
	switch {
	case m.mu.begun.IsZero() || window < 0: // the first, or the clock was turned back
		m.begin(now, m.look())
		m.mu.share, m.mu.asked = 1, true
	case window >= loadWindow:
		r := m.look()
		l := m.since(r, window)
		m.mu.share, m.mu.asked = l.share(), l.operations > 0
		m.begin(now, r)
	}
	return m.mu.share
}

func (m *meter) begin(now time.Time, r reading) {
	m.mu.begun, m.mu.first, m.mu.worked = now, r, 0
}

func (m *meter) since(r reading, window time.Duration) load {
	l := load{window: window, operations: r.operations - m.mu.first.operations, processors: r.Count,
		used: r.Used - m.mu.first.Used, idle: -1, worked: m.mu.worked}
	if r.Idle >= 0 && m.mu.first.Idle >= 0 {
		l.idle = r.Idle - m.mu.first.Idle
	}
	return l
}

// readLoad reads what the meter goes by.
func (m *Monitor) readLoad() reading {
	if m.hooks.Load != nil {
		p, operations := m.hooks.Load()
		return reading{p, operations}
	}
	return reading{host.LookAtProcessors(), m.ops.Started() - m.ops.Following() - m.own.Load()}
}

func (m *Monitor) newPacer() pacer {
	wait := waitOutside
	if m.hooks.Rest != nil {
		wait = m.hooks.Rest
	}
	return pacer{clock: m.clock, meter: &m.meter, least: m.params.leastShare, wait: wait, metrics: m.metrics}
}

// isAsked says whether clients ask for anything, by the window before.
func (m *meter) isAsked() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.mu.asked
}

// last is the share by the last window, 1 before the first.
func (m *meter) last() float64 {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.mu.begun.IsZero() {
		return 1
	}
	return m.mu.share
}

// pacer makes one line of background work rest. Its meter is shared with the others.
type pacer struct {
	clock   clock.Clock
	meter   *meter
	least   func() float64
	wait    func(context.Context, time.Duration) error
	metrics *metrics
	// owed is the rest that was due at the time; below zero, what was rested too much.
	owed time.Duration
	at   time.Time
	// rested is how long it has rested, all together.
	rested time.Duration
}

// The shortest rest that is worth it, and how much of what was rested too much is given back.
const (
	leastRest = time.Millisecond
	mostSaved = 50 * time.Millisecond
	// longestStep is how much of a step counts as work: steps are made for less, and what takes longer has waited, for a
	// processor, a lock or the disk.
	longestStep = 10 * time.Millisecond
)

// did notes a step that took so long, of work that lags behind so much. On a clock that stands still, which is a test's,
// nothing takes any time, and there are no rests.
func (p *pacer) did(worked, lag time.Duration) {
	now := p.clock.Now()
	p.owe(now, worked, atLeast(p.meter.note(now, worked), p.least(), lag))
}

// didTell notes a step of a sweep that tells of each document.
func (p *pacer) didTell(worked time.Duration, t telling) {
	now := p.clock.Now()
	share := p.meter.note(now, worked)
	if p.meter.isAsked() {
		share = max(t.share(), p.least())
	}
	p.owe(now, worked, share)
}

// owe has the next rest make up for work that ends now, and may have the share.
func (p *pacer) owe(now time.Time, worked time.Duration, share float64) {
	p.pay(now.Add(-max(worked, 0)))
	p.owed += restFor(min(worked, longestStep), share)
	p.at = now
}

// pay counts the time up to now as rest.
func (p *pacer) pay(now time.Time) {
	p.owed = max(p.owed-max(now.Sub(p.at), 0), -mostSaved)
	p.at = now
}

// rest is called before a step, and returns when it may begin.
func (p *pacer) rest(ctx context.Context) error {
	begun := p.clock.Now()
	p.pay(begun)
	if p.owed < leastRest {
		yield.Now() // or clients wait until the scheduler thinks that it is their turn
		return nil
	}
	err := p.wait(ctx, min(p.owed, longestRest))
	now := p.clock.Now()
	p.pay(now)
	p.owed = min(p.owed, 0) // on whatever clock it was
	took := max(now.Sub(begun), 0)
	p.rested += took
	p.metrics.rests.Add(1)
	p.metrics.restMicros.Add(took.Microseconds())
	return err
}

// waitOutside waits in the machine's time, which passes whatever the database's clock does.
func waitOutside(ctx context.Context, d time.Duration) error {
	if clock.Wait(ctx, clock.Wall(), d) != nil {
		return context.Cause(ctx)
	}
	return nil
}
