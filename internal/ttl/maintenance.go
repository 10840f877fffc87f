package ttl

import (
	"context"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/ebbdb/ebb/internal/serverlog"
	"github.com/ebbdb/ebb/internal/storage"
)

// Maintenance is what collections whose records lie in the order of their expiry need beside sweeps, and nobody waits for:
// records that were stored before there was the order, or under another, are moved to where they belong (Sweeper.Recluster), and
// index entries whose records were swept are removed (Sweeper.Vacuum). A loop of its own does it, in slices of a few
// milliseconds, a slice of each collection in turn, and rests between them as sweeps do.
//
// Records are moved as soon as there are any to move: until all lie in order, documents are deleted one by one. Entries are
// vacuumed when there are half as many dead ones as documents, down to an eighth, and all of them when the collection has not
// been swept for a while, the longer the fewer they are: to find them the whole index is walked.

// maintenanceTask is what is to be done to one collection.
type maintenanceTask struct {
	// recluster and vacuum say that there may be work of the kind; vacuuming, that it was begun, and interrupted, that there was
	// a sweep since.
	// count, that a sweep waits for the order to be counted.
	recluster, vacuum, count bool
	vacuuming, interrupted   bool
	// sweeping says that a sweep is on its way: what it leaves may be seen already, and lastSwept is not of it yet.
	sweeping  bool
	at        time.Time // when to look at it
	lastSwept time.Time // zero: not since the start
	// news counts what has come up, so that what comes up during a slice is not forgotten after it.
	news           int64
	moved, removed int64     // since the start
	untold         bool      // records were moved, and it was not logged yet that all are in order
	retry          time.Time // before it sweeps do not bring it up: it failed
}

const (
	// quietFor is for how long a collection has not been swept when it is vacuumed to the end, if there are a dead entry to
	// eight documents; longestQuiet, however few there are.
	quietFor     = 5 * time.Second
	longestQuiet = 24 * time.Hour
	// leastDead is how many dead entries an index has before anybody minds.
	leastDead = 1000
	// taskRetry is when what failed is tried again.
	taskRetry = time.Minute
	// reclusteredAtOnce and vacuumedAtOnce bound one slice.
	reclusteredAtOnce = 100
	countedInSlice    = 4096
	vacuumedAtOnce    = 2000
)

// patience is for how long a collection has not been swept when it is worth it to vacuum it to the end.
func patience(dead, documents int64) time.Duration {
	if dead <= 0 {
		return longestQuiet
	}
	return time.Duration(min(float64(quietFor)*max(float64(documents)/8/float64(dead), 1), float64(longestQuiet)))
}

// vacuumsNow says whether it is time to vacuum an index with so many dead entries, of a collection with so many documents.
func (c *maintenanceTask) vacuumsNow(dead, documents int64, now time.Time) bool {
	switch {
	case c.vacuuming && (!c.interrupted || dead > documents/8):
		return true
	case dead >= leastDead && dead >= documents/2:
		return true
	}
	return c.quiet(now) >= patience(dead, documents)
}

// quiet is for how long the collection has not been swept.
func (c *maintenanceTask) quiet(now time.Time) time.Duration {
	if c.lastSwept.IsZero() || now.Before(c.lastSwept) {
		return math.MaxInt64
	}
	return now.Sub(c.lastSwept)
}

// noteTask has the maintenance look at the collection.
func (m *Monitor) noteTask(collection uint32, note func(*maintenanceTask)) {
	now := m.clock.Now()
	m.mu.Lock()
	c := m.mu.tasks[collection]
	if c == nil {
		c = &maintenanceTask{}
		m.mu.tasks[collection] = c
	}
	c.news++
	c.at = now
	note(c)
	m.mu.Unlock()
	m.signalMaintenance()
}

func (m *Monitor) noteSwept(collection uint32) {
	now := m.clock.Now()
	m.noteTask(collection, func(c *maintenanceTask) {
		c.vacuum, c.interrupted, c.lastSwept, c.sweeping = true, true, now, false
		if left := c.retry.Sub(now); left > 0 && left <= taskRetry { // or the clock was turned back
			c.at = c.retry
		}
	})
}

// noteSweeping comes before a sweep, and after one that did nothing.
func (m *Monitor) noteSweeping(collection uint32, on bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	c := m.mu.tasks[collection]
	if c == nil && !on { // dropped meanwhile
		return
	}
	if c == nil {
		c = &maintenanceTask{}
		m.mu.tasks[collection] = c
	}
	c.sweeping = on
	c.news++
}

// lastSweep is when the collection was swept last, and whether it is being swept now.
func (m *Monitor) lastSweep(collection uint32) (last time.Time, now bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if c := m.mu.tasks[collection]; c != nil {
		return c.lastSwept, c.sweeping
	}
	return time.Time{}, false
}

func (m *Monitor) noteDisorder(collection uint32) {
	m.noteTask(collection, func(c *maintenanceTask) { c.recluster, c.vacuum = true, true })
}

func (m *Monitor) forgetTask(collection uint32) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.mu.tasks, collection)
}

// surveyTasks has the maintenance look at every collection: what was left undone is not noted anywhere.
func (m *Monitor) surveyTasks() {
	for _, coll := range m.store.Catalog().All() {
		if !coll.IsView() {
			m.noteDisorder(coll.ID)
		}
	}
}

func (m *Monitor) signalMaintenance() {
	m.mu.Lock()
	m.mu.maintenance.asked++
	m.mu.Unlock()
	select {
	case m.wakeMaintenance <- struct{}{}:
	default: // it has been told
	}
}

// keep is the maintenance's loop.
func (m *Monitor) keep(ctx context.Context) {
	k := m.newKeeper(ctx)
	defer k.hideAllBut(nil)
	for last := uint32(0); ctx.Err() == nil; {
		due, until := m.dueTasks()
		k.hideAllBut(due)
		if len(due) == 0 {
			m.sleep(ctx, &m.mu.maintenance, m.wakeMaintenance, until)
			continue
		}
		i, _ := slices.BinarySearch(due, last+1)
		last = due[i%len(due)]
		if k.pacer.rest(ctx) == nil && m.Held() == "" {
			k.slice(last, false)
		}
	}
}

// dueTasks are the collections that have something to be done to them now, sorted; when there are none, until is when to look
// again, by monotonic time.
func (m *Monitor) dueTasks() (due []uint32, until time.Duration) {
	held := m.Held() != ""
	m.mu.Lock()
	defer m.mu.Unlock()
	m.mu.maintenance.plans()
	now, ran := m.clock.Read()
	until = ran + m.params.sleep()
	for id, c := range m.mu.tasks {
		switch {
		case !c.recluster && !c.vacuum && !c.count:
		case c.at.After(now) || held:
			if !held {
				until = min(until, ran+c.at.Sub(now))
			}
		default:
			due = append(due, id)
		}
	}
	slices.Sort(due)
	return due, until
}

// slice does a little of what is to be done to a collection. Where all says so it vacuums whatever there is.
func (k *keeper) slice(collection uint32, all bool) {
	k.mu.Lock()
	known := k.mu.tasks[collection]
	if known == nil {
		k.mu.Unlock()
		return
	}
	c := *known
	k.mu.Unlock()
	news := c.news
	err := k.work(collection, &c, all)
	killed := err != nil && k.isKilled(collection)
	c.retry = time.Time{}
	if err != nil {
		k.hide(collection)
	}
	if err != nil && k.ctx.Err() == nil {
		c.retry = k.clock.Now().Add(taskRetry)
		c.at = c.retry
		k.log.Warn("TTL: records could not be put in order", "collection", collection, "error", serverlog.Client(err.Error()))
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	known = k.mu.tasks[collection]
	switch {
	case known == nil: // dropped meanwhile
	case known.news == news:
		*known = c
	default:
		known.moved, known.removed, known.vacuuming, known.untold, known.retry = c.moved, c.removed, c.vacuuming, c.untold, c.retry
		if killed { // whatever has come up
			known.at = c.at
		}
	}
}

// work does a slice of a task, and shows it.
func (k *keeper) work(collection uint32, c *maintenanceTask, all bool) (err error) {
	defer func() {
		if r := recover(); r != nil { // the next collections shall not suffer
			err = fmt.Errorf("ttl: panic: %v", r)
			k.log.Error("TTL: the maintenance panicked", "collection", collection, "panic", serverlog.Panic(r), serverlog.Stack())
		}
	}()
	ctx := k.contextOf(collection)
	if k.hooks.BeforeSlice != nil {
		k.hooks.BeforeSlice(ctx)
	}
	if ctx.Err() != nil { // killed since the last
		return context.Cause(ctx)
	}
	var did step
	err = holding(ctx, k.hand, func() (err error) {
		begun := k.clock.Now()
		defer func() { k.pacer.did(k.clock.Now().Sub(begun), 0) }()
		did, err = k.doTask(ctx, collection, c, all)
		return err
	})
	if err != nil {
		return err
	}
	return k.show(collection, did)
}

func (m *Monitor) doTask(ctx context.Context, collection uint32, c *maintenanceTask, all bool) (step, error) {
	if err := m.gate.Enter(ctx); err != nil {
		return step{}, err
	}
	defer m.gate.Leave()
	switch {
	case c.recluster:
		return m.recluster(ctx, collection, c)
	case c.count:
		return m.count(ctx, collection, c)
	}
	return m.vacuum(ctx, collection, c, all)
}

func (m *Monitor) recluster(ctx context.Context, collection uint32, c *maintenanceTask) (step, error) {
	moved, more, err := m.sweeper.Recluster(ctx, collection, reclusteredAtOnce)
	if err != nil {
		return step{}, err
	}
	c.moved += int64(moved)
	c.untold = c.untold || moved > 0
	m.metrics.reclustered.Add(int64(moved))
	order, _ := m.sweeper.Reclustered(collection)
	if !more {
		m.mayBeSwept(collection)
		err = m.tellOrdered(ctx, collection, c)
	}
	c.recluster = more || err != nil
	return step{taskWork{reclustering, order}, int64(moved), more}, err
}

// count goes on with what a sweep has to know of the collection first.
func (m *Monitor) count(ctx context.Context, collection uint32, c *maintenanceTask) (step, error) {
	more, err := m.sweeper.CountOrder(ctx, collection, countedInSlice)
	if err != nil {
		return step{}, err
	}
	if c.count = more; !more {
		m.mayBeSwept(collection)
	}
	return step{}, nil
}

// tellOrdered logs that all records of a collection have been put in order, where any were moved.
func (m *Monitor) tellOrdered(ctx context.Context, collection uint32, c *maintenanceTask) error {
	if !c.untold {
		return nil
	}
	left, err := m.sweeper.Unclustered(ctx, collection, 1)
	coll := m.store.Catalog().ByID(collection)
	if _, moved := m.sweeper.Reclustered(collection); err == nil && left == 0 && coll != nil && moved > 0 { // it may have another order since
		m.log.Info("TTL: put all records in order", "namespace", coll.NS.String(), "numMoved", moved)
	}
	c.untold = err != nil
	return err
}

// mayBeSwept has the next visit try to delete all at once.
func (m *Monitor) mayBeSwept(collection uint32) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for t, a := range m.mu.visited {
		if t.Collection == collection {
			a.singly = time.Time{}
		}
	}
}

func (m *Monitor) vacuum(ctx context.Context, collection uint32, c *maintenanceTask, all bool) (step, error) {
	did := step{taskWork: taskWork{message: vacuuming}}
	if !all {
		if ready, err := m.readyToVacuum(ctx, collection, c); !ready {
			return did, err
		}
	}
	removed, more, err := m.sweeper.Vacuum(ctx, collection, vacuumedAtOnce)
	if err != nil {
		return did, err
	}
	c.vacuum, c.vacuuming = more, more
	c.removed += int64(removed)
	m.metrics.vacuumed.Add(int64(removed))
	did.done, did.more = int64(removed), more
	return did, nil
}

// readyToVacuum says whether it is time to vacuum; if not, c says when it will be.
func (m *Monitor) readyToVacuum(ctx context.Context, collection uint32, c *maintenanceTask) (bool, error) {
	view, err := m.store.View(ctx)
	if err != nil {
		return false, err
	}
	defer view.Close()
	r, ok := view.CollectionByID(collection)
	if !ok || !r.MayHaveTombstones() {
		c.vacuum, c.vacuuming = false, false
		return false, nil
	}
	dead, documents, err := r.Dead()
	if err != nil {
		return false, err
	}
	now := m.clock.Now()
	last, sweeping := m.lastSweep(collection) // as late as the view: a sweep is noted before anybody sees what it has done
	if sweeping {
		c.at = now.Add(quietFor)
		return false, nil
	}
	c.lastSwept = last
	ready := c.vacuumsNow(dead, documents, now)
	switch {
	case !ready:
		c.vacuuming, c.at = false, c.lastSwept.Add(patience(dead, documents))
	case !c.vacuuming:
		c.vacuuming, c.interrupted = true, false
	}
	return ready, nil
}

// RunMaintenance does now all that the maintenance has to do at any time, and returns when it is done, unless it is held up.
func (m *Monitor) RunMaintenance(ctx context.Context) error {
	m.surveyTasks()
	k := m.newKeeper(ctx)
	defer k.hideAllBut(nil)
	for _, coll := range m.store.Catalog().All() {
		for m.Held() == "" && m.hasTask(coll.ID) {
			if err := k.pacer.rest(ctx); err != nil {
				return err
			}
			k.slice(coll.ID, true)
		}
		k.hide(coll.ID)
	}
	return ctx.Err()
}

// hasTask says whether there is something to do to the collection that has not just failed.
func (m *Monitor) hasTask(collection uint32) bool {
	now := m.clock.Now()
	m.mu.Lock()
	defer m.mu.Unlock()
	c := m.mu.tasks[collection]
	return c != nil && (c.recluster || c.vacuum || c.count) && c.at.Before(now.Add(taskRetry))
}

// Order is how the records of a collection lie that are to lie in the order of their expiry.
type Order struct {
	// Ordered says that all do. Unclustered is how many do not; at least so many when it is not Exact.
	Ordered     bool
	Unclustered int64
	Exact       bool
	// Reclustered is how many were moved since the start.
	Reclustered int64
	// Dead is how many records were swept and still have entries in the index on _id.
	Dead int64
}

func (m *Monitor) order(ctx context.Context, r *storage.Reader) (o Order, err error) {
	collection := r.Catalog().ID
	if o.Unclustered, err = m.sweeper.Unclustered(ctx, collection, maxUnclustered); err != nil {
		return o, err
	}
	o.Ordered, o.Exact = o.Unclustered == 0, o.Unclustered < maxUnclustered
	if o.Dead, _, err = r.Dead(); err != nil {
		return o, err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if c := m.mu.tasks[collection]; c != nil {
		o.Reclustered = c.moved
	}
	return o, nil
}
