package ttl

import (
	"context"
	"errors"
	"log/slog"
	"math"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/ebbdb/ebb/internal/clock"
	"github.com/ebbdb/ebb/internal/operation"
	"github.com/ebbdb/ebb/internal/storage"
	"github.com/ebbdb/ebb/internal/storage/meaning"
	"github.com/ebbdb/ebb/internal/storage/sweeper"
	"github.com/ebbdb/ebb/internal/ttl/policy"
)

// Desc is what the monitor is called in currentOp.
const Desc = "TTLMonitor"

// Options of a Monitor. All are required but Hooks.
type Options struct {
	Clock  clock.Clock
	Params *Parameters
	Ops    *operation.Registry
	Log    *slog.Logger
	Hooks  Hooks
	// Standby, unless nil, is why the server is to let nothing go by itself; "" when it may.
	Standby func() string
}

// Monitor runs passes: on its own between Start and Stop, and whenever RunPass says so. OnDDL, OnDeadline and
// ParameterChanged keep its agenda right and may be called before Start.
type Monitor struct {
	clock    clock.Clock
	params   *Parameters
	ops      *operation.Registry
	log      *slog.Logger
	gate     Gate
	recorder Recorder
	hooks    Hooks
	standby  func() string
	client   *operation.Client
	store    *storage.Store
	sweeper  *sweeper.Sweeper
	metrics  *metrics
	meter    meter
	pacer    pacer        // of passes, which run one at a time
	own      atomic.Int64 // operations of ours, which are no clients'

	turn chan struct{} // holds one token, which whoever runs a pass takes
	wake chan struct{} // tells the loop to plan anew
	// hand holds one token, which a visit takes and a slice of maintenance, so that records do not move under a visit's feet.
	hand chan struct{}
	time *timekeeper

	wakeMaintenance chan struct{}
	fronts          fronts

	stop context.CancelFunc
	done sync.WaitGroup

	mu struct {
		sync.Mutex // guards plans and accounts, and is held for moments only
		agenda     agenda
		// released are collections of which open transactions had what was due, and have ended: unlike what is in the agenda it stays until
		// a pass has looked at them.
		released map[uint32]struct{}
		// surveyed says that the agenda knows of everything that was stored when it was begun.
		surveyed bool
		lastFull time.Duration // when the last pass over everything began, by monotonic time
		rested   time.Duration // before it no precise pass begins, by monotonic time
		planned  time.Duration // when the loop wakes, by monotonic time; 0 when a deadline does not change that
		// retries is, of targets whose last visit failed, how long after that they come up again. Of a pass that failed as a whole it is retryPause,
		// and retry is when the next may be, by monotonic time.
		retries     map[Target]time.Duration
		retryPause  time.Duration
		retry       time.Duration
		visited     map[Target]*account
		reclaimed   map[uint32]int64            // bytes of documents deleted of each collection since the server started
		tasks       map[uint32]*maintenanceTask // by collection
		passes      rhythm
		maintenance rhythm
	}
}

// New returns a Monitor that does nothing yet.
func New(o Options) *Monitor {
	m := &Monitor{clock: o.Clock, params: o.Params, ops: o.Ops, log: o.Log, hooks: o.Hooks, standby: o.Standby, metrics: &metrics{}}
	m.gate, m.recorder = Open{}, NoRecord{}
	m.meter.look = m.readLoad
	m.pacer = m.newPacer()
	m.client = &operation.Client{Desc: Desc}
	m.hand = make(chan struct{}, 1)
	m.turn, m.wake, m.wakeMaintenance = make(chan struct{}, 1), make(chan struct{}, 1), make(chan struct{}, 1)
	m.mu.visited, m.mu.tasks, m.mu.released = map[Target]*account{}, map[uint32]*maintenanceTask{}, map[uint32]struct{}{}
	m.mu.reclaimed, m.mu.retries = map[uint32]int64{}, map[Target]time.Duration{}
	m.mu.lastFull = clock.Monotonic(m.clock)
	m.time = newTimekeeper(o.Clock, o.Params, o.Log, m.Wake) // which sleeps until it would have been trusted anyway
	m.mu.passes, m.mu.maintenance = newRhythm(), newRhythm()
	return m
}

// Connect gives the monitor what it works on and with, before Start and RunPass: the store, whose OnDDL and OnDeadline are
// the monitor's, its sweeper, the gate it goes through, and who takes account.
func (m *Monitor) Connect(s *storage.Store, sweeps *sweeper.Sweeper, g Gate, r Recorder) {
	m.store, m.sweeper, m.gate, m.recorder = s, sweeps, g, r
	m.time.begin(s.TimeSeen())
	m.time.look()
	for _, coll := range s.Catalog().All() {
		for _, d := range coll.Indexes {
			if d.TTLRepaired {
				m.log.Warn("Found an existing TTL index with an invalid 'expireAfterSeconds' in the catalog; it reads as 2147483647",
					"namespace", coll.NS.String(), "index", d.Name)
			}
		}
	}
	m.noteTime(context.Background()) // so that a clock that is turned before the first minute is over is known by it
	m.params.Hold.connect(m)
}

// Start begins to run passes. The first comes when the first deadline has passed, or after one sleep.
func (m *Monitor) Start() {
	ctx, stop := context.WithCancel(context.Background())
	m.stop = stop
	m.surveyTasks()
	m.done.Go(func() { m.watch(ctx) })
	m.begin(&m.mu.passes, func() { m.loop(ctx) })
	m.begin(&m.mu.maintenance, func() { m.keep(ctx) })
}

// begin runs a loop.
func (m *Monitor) begin(r *rhythm, loop func()) {
	m.mu.Lock()
	r.started = true
	m.mu.Unlock()
	m.done.Go(func() {
		loop()
		m.mu.Lock()
		defer m.mu.Unlock()
		r.end()
	})
}

// Stop interrupts a pass that runs and waits for it.
func (m *Monitor) Stop() {
	if m.stop != nil {
		m.stop()
		m.done.Wait()
		m.stop = nil
	}
	if m.store != nil {
		m.noteTime(context.Background())
	}
}

// Client is how the monitor shows up in currentOp, idle or not.
func (m *Monitor) Client() *operation.Client { return m.client }

// RunPass runs a pass over everything now, unless passes are off, and returns when it is over. The loop's next comes one
// sleep later.
func (m *Monitor) RunPass(ctx context.Context) error {
	return holding(ctx, m.turn, func() error { return m.runAll(ctx) })
}

// holding runs f with the token, when nobody else has it.
func holding(ctx context.Context, token chan struct{}, f func() error) error {
	select {
	case token <- struct{}{}:
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	defer func() { <-token }()
	return f()
}

func (m *Monitor) run(ctx context.Context, scope []uint32) error {
	if scope == nil {
		return m.runAll(ctx)
	}
	return m.runDue(ctx, scope)
}

func (m *Monitor) loop(ctx context.Context) {
	for ctx.Err() == nil {
		until, due, scope := m.plan()
		if !due {
			m.sleep(ctx, &m.mu.passes, m.wake, until)
			continue
		}
		err := holding(ctx, m.turn, func() error { return m.run(ctx, scope) })
		if err != nil && ctx.Err() == nil {
			m.log.Warn("TTL monitor was interrupted", "error", err.Error())
		}
		m.passed(err)
	}
}

// passed notes how a pass has ended. Where it failed, what it was to look at is noted nowhere, so everything is looked at again soon.
func (m *Monitor) passed(err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if err == nil {
		m.mu.retryPause, m.mu.retry = 0, 0
		return
	}
	m.mu.surveyed = false
	m.mu.retryPause = m.nextPause(m.mu.retryPause)
	m.mu.retry = clock.Monotonic(m.clock) + m.mu.retryPause
}

// firstRetry is how soon what failed is tried again; each time after that it takes twice as long, but no longer than between two passes over everything.
const firstRetry = time.Second

func (m *Monitor) nextPause(last time.Duration) time.Duration {
	return min(max(2*last, firstRetry), m.params.sleep())
}

// tried notes how the visit of a target has ended, in a pass that began at a time. One that failed comes up again.
func (m *Monitor) tried(t Target, failed bool, at int64) {
	m.mu.Lock()
	if !failed {
		delete(m.mu.retries, t)
		m.mu.Unlock()
		return
	}
	pause := m.nextPause(m.mu.retries[t])
	m.mu.retries[t] = pause
	m.mu.Unlock()
	m.note(t.Collection, at+pause.Milliseconds())
}

// sleep waits until the monotonic time, or until there is a reason to plan anew.
func (m *Monitor) sleep(ctx context.Context, r *rhythm, wake <-chan struct{}, until time.Duration) {
	t := m.clock.NewTimer(until - clock.Monotonic(m.clock))
	defer t.Stop()
	if clock.Monotonic(m.clock) >= until { // time has passed between the two
		return
	}
	m.mu.Lock()
	r.fallAsleep(until)
	m.mu.Unlock()
	select {
	case <-t.C():
	case <-wake:
	case <-ctx.Done():
	}
}

// The shortest and the longest rest between precise passes.
const (
	shortestRest = 40 * time.Millisecond
	longestRest  = time.Second
)

// restAfter is how long there is no precise pass after one that worked so long: deadlines that come close together share
// one, since much at once takes little more than a few, and holds up the collection's writers as briefly. On a clock that
// stood still, which is a test's, there is no rest.
func restAfter(took time.Duration) time.Duration {
	if took <= 0 {
		return 0
	}
	return min(max(took, shortestRest), longestRest)
}

// plan is until when to sleep, by monotonic time, or, when that time has come, what to look at: the scope, nil for everything.
func (m *Monitor) plan() (until time.Duration, due bool, scope []uint32) {
	precise, settles := m.isPrecise(), m.settles()
	wall, now := m.clock.Read()
	m.mu.Lock()
	defer m.mu.Unlock()
	m.mu.passes.plans()
	if settles > 0 { // there is a pass over everything when the clock is trusted
		m.mu.surveyed, m.mu.planned = false, 0
		return now + settles, false, nil
	}
	until = m.mu.lastFull + m.params.sleep()
	if until <= now || precise && !m.mu.surveyed && m.mu.retry <= now {
		return now, true, nil
	}
	if precise && !m.mu.surveyed {
		until = min(until, m.mu.retry)
	}
	next := m.mu.agenda.next()
	if len(m.mu.released) > 0 {
		next = math.MinInt64
	}
	if precise && next != policy.Never {
		at := max(now+waitFor(next, wall), m.mu.rested)
		if at <= now {
			return now, true, m.takeDue(wall.UnixMilli())
		}
		until = min(until, at)
	}
	m.mu.planned = until
	return until, false, nil
}

// takeDue are the collections to look at now; the caller holds the mutex.
func (m *Monitor) takeDue(now int64) (due []uint32) {
	due = m.mu.agenda.takeDue(now)
	for collection := range m.mu.released {
		if !slices.Contains(due, collection) {
			due = append(due, collection)
		}
	}
	clear(m.mu.released)
	return due
}

// waitFor is how long it is from the wall time to a time in milliseconds, at most longestWait.
func waitFor(at int64, wall time.Time) time.Duration {
	now := wall.UnixMilli()
	switch {
	case at <= now:
		return 0
	case at-now < 0 || at-now > longestWait.Milliseconds():
		return longestWait
	}
	return time.UnixMilli(at).Sub(wall)
}

// longestWait is more than any sleep.
const longestWait = 100 * 365 * 24 * time.Hour

// isPrecise says whether deadlines wake the monitor at the moment.
func (m *Monitor) isPrecise() bool {
	return m.params.Precise.Get() && m.runs()
}

// runAll runs a pass over everything, if there may be one.
func (m *Monitor) runAll(ctx context.Context) error {
	m.mu.Lock()
	m.mu.lastFull = clock.Monotonic(m.clock)
	m.mu.Unlock()
	if !m.runs() {
		m.log.Debug("TTL pass skipped", "heldUpBy", m.Held())
		return nil
	}
	m.mu.Lock()
	m.mu.surveyed = true // unless something fails, or changes meanwhile
	m.mu.Unlock()
	err := m.runScope(ctx, nil)
	if errors.Is(err, errHeld) {
		m.interrupted()
		return nil
	}
	m.forgetGone(ctx)
	return err
}

// runDue runs a pass over the collections that have come up.
func (m *Monitor) runDue(ctx context.Context, scope []uint32) error {
	started, rested := m.clock.Now(), m.pacer.rested
	err := m.runScope(ctx, scope)
	now := m.clock.Now()
	worked := now.Sub(started) - (m.pacer.rested - rested)
	m.mu.Lock()
	if d := restAfter(worked); d > 0 {
		m.mu.rested = clock.Monotonic(m.clock) + d
	}
	m.mu.Unlock()
	if errors.Is(err, errHeld) {
		m.interrupted()
		return nil
	}
	return err
}

// interrupted has the monitor look at everything again as soon as it may: a pass has ended before it was through.
func (m *Monitor) interrupted() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.mu.surveyed = false
}

// OnDeadline is for storage.Options: documents with the deadline were written to the collection.
func (m *Monitor) OnDeadline(collection uint32, deadline int64) {
	if m.params.Precise.Get() {
		m.note(collection, deadline)
	}
}

// OnReleased is for storage.Options: a transaction has ended that had documents of the collection which were passed over.
func (m *Monitor) OnReleased(collection uint32) {
	m.noteDisorder(collection)
	if !m.params.Precise.Get() {
		return
	}
	m.mu.Lock()
	m.mu.released[collection] = struct{}{}
	m.mu.Unlock()
	m.signal()
}

// OnDDL is for storage.Options: a TTL that is new or another makes the collection come up at once.
func (m *Monitor) OnDDL(e meaning.Event) {
	switch e.Kind {
	case meaning.IndexCreated, meaning.IndexDropped, meaning.IndexModified:
		m.noteDisorder(e.Collection)
	case meaning.CollectionDropped:
		m.forgetTask(e.Collection)
	}
	switch e.Kind {
	case meaning.IndexCreated, meaning.IndexModified:
		if e.Index != nil && e.Index.TTL {
			m.OnDeadline(e.Collection, math.MinInt64)
		}
	case meaning.CollectionModified:
		m.OnDeadline(e.Collection, math.MinInt64)
	case meaning.CollectionDropped:
		m.clearAgenda([]uint32{e.Collection})
	}
}

// ParameterChanged is for parameter.NewRegistry.
func (m *Monitor) ParameterChanged(name string) {
	switch name {
	case "ttlMonitorPrecise", changeGraceName: // without the one the agenda is not kept, with the other a grace may end
		m.Wake()
	case sleepSecsName, "ttlMonitorEnabled", clockStepName, clockSettleName:
		m.signal()
		m.signalMaintenance()
	}
}

// Wake makes the monitor look at everything anew: something that sweeps go by has changed, or does not hold them back any
// more.
func (m *Monitor) Wake() {
	m.mu.Lock()
	m.mu.surveyed, m.mu.retry = false, 0
	m.mu.Unlock()
	m.signal()
	m.signalMaintenance()
}

func (m *Monitor) signal() {
	m.mu.Lock()
	m.mu.passes.asked++
	m.mu.Unlock()
	select {
	case m.wake <- struct{}{}:
	default: // it has been told
	}
}

func (m *Monitor) note(collection uint32, at int64) {
	wall, now := m.clock.Read() // the wall time may have been turned since the loop planned by it
	m.mu.Lock()
	m.mu.agenda.note(collection, at)
	early := now+waitFor(at, wall) < m.mu.planned
	m.mu.Unlock()
	if early {
		m.signal()
	}
}

// clearAgenda forgets the collections of the scope, nil for all.
func (m *Monitor) clearAgenda(scope []uint32) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if scope == nil {
		m.mu.agenda = agenda{}
	}
	for _, id := range scope {
		m.mu.agenda.forget(id)
	}
}
