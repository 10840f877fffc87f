package tikvkv

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"math"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/tikv/client-go/v2/txnkv/transaction"

	"github.com/ebbdb/ebb/internal/clock"
	"github.com/ebbdb/ebb/internal/kv"
	"github.com/ebbdb/ebb/internal/kv/claims"
	"github.com/ebbdb/ebb/internal/kv/rangetombstone"
)

// committer orders commits and writes them, one group at a time: all that came while the group before was on its way. A group is one optimistic
// transaction of TiKV, so it is there whole or not at all, and costs what one commit costs.
//
// Claims are checked here, in memory, because nobody else writes as long as the lease is held. What TiKV has to see to is that this is so: each
// group writes one of the slots, and who takes the keyspace over writes them all. Of two transactions that write one key TiKV lets the second
// fail if it began before the first was committed. So a group that began before the keyspace was taken over is committed before that, and seen
// by the new server, or fails; and none begins after it, since a group's timestamp must lie within the lease, and since each looks, in the same
// transaction, whether its epoch has ended (lease.tryWrite).
//
// A group that was ordered, and that the Observer was told of, is tried until it is written or the keyspace is lost: its slot tells whether an
// attempt of which nobody knows has succeeded. There are several slots in turn because the locks of a commit may outlive it for a moment.
//
// Who waits for a commit is told that nobody knows what becomes of it when the cluster does not answer for long (stallAfter). Then it lets go of the
// locks by which it has kept others out before its group is visible, which a sweep relies on: what that deletes as a range it does not claim. So whoever
// begins after that, and before the group is visible and the Observer knows, is in conflict (late), as it would be over a key that both have claimed.
//
// Invariants: at most one group is ordered and not visible; sequences and numbers grow in the order of the groups; counters hold what is visible
// or nothing; a group's slot holds the number of its last commit.
type committer struct {
	engine *Engine
	clock  clock.Clock
	log    *slog.Logger

	// turn is held while a group is written. It guards what follows.
	turn     turn
	observer kv.Observer
	counters map[string]int64 // visible sums, a cache
	slots    int              // that were written, to take them in turn
	// tombstones are the visible ones, and removing is the one whose keys are being removed; its number is 0 when there is none.
	tombstones *rangetombstone.Set
	removing   rangetombstone.Tombstone

	mu struct {
		sync.Mutex // guards the rest, and is held for moments only
		claims     *claims.Claims
		number     uint64 // of the youngest visible Commit
		time       int64  // of the youngest ordered one
		late       uint64 // the sequence of those who began behind the last group that was left before it was visible
		queue      []*pending
		bytes      int
		stalled    error // why commits wait for the cluster; nil: they do not
		closed     error // why no more come; nil: they may
	}
	// expected is how many commit at about the same time, and took how long the last group did; the goroutine's.
	expected int
	took     time.Duration
	wake     chan struct{} // holds one token
	stopped  chan struct{} // closed when the goroutine has ended
	groups   atomic.Int64  // written
	written  atomic.Int64  // commits in them
}

const (
	// slots are written by groups in turn; the one behind them by groups without commits, and by the reclaimer.
	slots = 16
	// maxQueue and maxQueueBytes bound what waits for the next group, and maxGroupBytes how much of it one group takes, or one commit that is larger.
	maxQueue      = 1 << 14
	maxQueueBytes = 256 << 20
	maxGroup      = 1 << 12
	maxGroupBytes = 8 << 20
	// maxGather is the longest that a group waits for others.
	maxGather = 5 * time.Millisecond
	// maxCounters bounds the cache of counters; past it the cache starts anew.
	maxCounters = 1 << 16
	// maxTombstones bounds how many range tombstones there are; past it no range is deleted before some are gone.
	maxTombstones = 1 << 14
	// stallAfter is how long a group is tried before those who wait for it are told that its outcome is not known, and others are refused.
	stallAfter = 10 * time.Second
)

// pending is a Commit on its way in.
type pending struct {
	*kv.Commit
	begin   uint64 // the sequence when its transaction began; noTransaction: it has none
	ordered bool   // it came with its number and time, and conflicts with nothing
	// drop is, where it is not nil, a range tombstone that hides nothing any more, and p does nothing else.
	drop  *rangetombstone.Tombstone
	done  chan struct{}
	err   error // set before done is closed
	taken bool  // it may have been ordered; guarded by committer.mu
	over  bool  // done is closed, or nobody waits for that; guarded by committer.mu
	// late is told what became of it, where whoever waited was told that nobody knows; guarded by committer.mu.
	late chan bool
}

// noTransaction is when what is written outside of transactions began: it has read nothing, and is in conflict with nobody.
const noTransaction = math.MaxUint64

func newCommitter(e *Engine, number uint64, millis int64) *committer {
	c := &committer{engine: e, clock: e.options.Clock, log: e.options.Logger, turn: newTurn(), counters: map[string]int64{},
		wake: make(chan struct{}, 1), stopped: make(chan struct{})}
	c.mu.claims = claims.New()
	c.mu.number, c.mu.time = number, millis
	return c
}

// commit returns when p is visible, or has failed. Where ctx ends before p is ordered, nothing is written. What has been ordered is waited for then, too,
// but no longer than stallAfter.
func (c *committer) commit(ctx context.Context, p *pending) error {
	p.done = make(chan struct{})
	if err := c.enqueue(p); err != nil {
		return err
	}
	select {
	case <-p.done:
		return p.err
	case <-ctx.Done():
	}
	if c.withdraw(p) {
		return context.Cause(ctx)
	}
	late := c.clock.NewTimer(stallAfter)
	defer late.Stop()
	select {
	case <-p.done:
		return p.err
	case <-late.C():
		return c.leave(p, context.Cause(ctx))
	}
}

// leave is for one who waits for p no longer.
func (c *committer) leave(p *pending, why error) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if p.over {
		return p.err
	}
	p.over = true
	return p.undetermined(why)
}

// undetermined is what one is told who waits for p no longer. The caller holds mu.
func (p *pending) undetermined(why error) error {
	p.late = make(chan bool, 1)
	return &kv.Late{Why: why, Visible: p.late}
}

// withdraw takes p out of the queue, unless it has left it.
func (c *committer) withdraw(p *pending) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if p.taken || p.over {
		return false
	}
	c.mu.queue = slices.DeleteFunc(c.mu.queue, func(other *pending) bool { return other == p })
	c.mu.bytes -= p.TotalSize()
	return true
}

func (c *committer) enqueue(p *pending) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case c.mu.closed != nil:
		return c.mu.closed
	case c.mu.stalled != nil:
		return unavailable(c.mu.stalled)
	case len(c.mu.queue) >= maxQueue, len(c.mu.queue) > 0 && c.mu.bytes+p.TotalSize() > maxQueueBytes:
		return unavailable(errStalled)
	}
	c.mu.queue = append(c.mu.queue, p)
	c.mu.bytes += p.TotalSize()
	select {
	case c.wake <- struct{}{}:
	default:
	}
	return nil
}

// run writes groups until the committer is closed.
func (c *committer) run() {
	defer close(c.stopped)
	for range c.wake {
		c.gather()
		for group := c.take(); len(group) > 0; group = c.take() {
			began := clock.Monotonic(c.clock)
			c.turn.Lock()
			c.write(group)
			c.turn.Unlock()
			c.expect(len(group), clock.Monotonic(c.clock)-began)
			c.gather()
		}
		if c.isClosed() {
			return
		}
	}
}

// gather waits, where somebody is in the queue, for those whom the last group has just let go: their next commits are in the next group too, where
// otherwise two halves would alternate and each cost what one does. It waits for as many as lately were in a group or came while it was written, and
// no longer than that group took. Who commits alone is never kept waiting.
func (c *committer) gather() {
	if !c.lacksSome() {
		return
	}
	late := clock.Wall().NewTimer(min(c.took, maxGather)) // whoever turns the clock of the data waits for a commit, perhaps
	defer late.Stop()
	for c.lacksSome() {
		select {
		case <-c.wake:
		case <-late.C():
			return
		}
	}
}

// lacksSome says whether some are in the queue, and not all who are expected.
func (c *committer) lacksSome() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.mu.queue) > 0 && len(c.mu.queue) < c.expected && c.mu.closed == nil
}

// expect counts the members of a group that was written and those who came meanwhile.
func (c *committer) expect(members int, took time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.expected, c.took = members+len(c.mu.queue), took
}

func (c *committer) isClosed() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.mu.closed != nil
}

// close has no more commits come, and those that are not ordered fail with why.
func (c *committer) close(why error) {
	c.mu.Lock()
	c.mu.closed = why
	c.refuse(why)
	c.mu.Unlock()
	select {
	case c.wake <- struct{}{}:
	default:
	}
}

// refuse ends those in the queue. The caller holds mu.
func (c *committer) refuse(why error) {
	for _, p := range c.mu.queue {
		c.end(p, why)
	}
	c.mu.queue, c.mu.bytes = nil, 0
}

// end tells the one who waits for p, or has left it. The caller holds mu.
func (c *committer) end(p *pending, err error) {
	if p.over {
		if p.late != nil && !errors.Is(err, kv.ErrUndetermined) {
			p.late <- err == nil
			p.late = nil
		}
		return
	}
	p.err, p.over = err, true
	close(p.done)
}

// take is the next group out of the queue.
func (c *committer) take() (group []*pending) {
	c.mu.Lock()
	defer c.mu.Unlock()
	size := 0
	for len(c.mu.queue) > 0 && len(group) < maxGroup {
		p := c.mu.queue[0]
		alone := p.Meaning != nil && p.Meaning.Alone() || p.ordered || len(p.Ranges()) > 0
		if len(group) > 0 && (alone || size+p.TotalSize() > maxGroupBytes) {
			break
		}
		p.taken = true
		group, size = append(group, p), size+p.TotalSize()
		c.mu.queue[0] = nil
		c.mu.queue = c.mu.queue[1:]
		c.mu.bytes -= p.TotalSize()
		if alone {
			break
		}
	}
	return group
}

// write orders and writes a group. The caller holds turn.
func (c *committer) write(group []*pending) {
	if err := c.loadCounters(group); err != nil {
		c.endAll(group, err)
		return
	}
	g := c.order(group)
	slot, value := slots, slotValue{}
	switch {
	case len(g.commits) > 0:
		slot, value = c.nextSlot(), g.value()
	case g.tombstones != c.tombstones: // no slot would tell by the number of a commit whether that is written
		value.number = c.engine.reclaims.written.Add(1)
	default:
		c.finish(g, view{sequence: g.sequence, ts: c.engine.views.time(), tombstones: c.tombstones})
		return
	}
	ts, err := c.engine.lease.write(slot, value, g.fill, c.stall(g))
	if err != nil { // it has its number, and memory knows of it
		c.fail(g, err)
		return
	}
	c.finish(g, view{sequence: g.sequence, ts: ts, tombstones: g.tombstones})
}

func (c *committer) nextSlot() int {
	c.slots++
	return c.slots % slots
}

// group is what is written at once.
type group struct {
	committer *committer
	commits   []*pending // that write
	others    []*pending // that only claim, or drop tombstones
	refused   []*pending // that conflict, or come out of their order
	sequence  uint64     // of the youngest
	number    uint64
	millis    int64
	sums      map[string]int64 // of counters
	parts     map[string]int   // how many values have that it writes, before that or behind it, where they have any
	shortened int              // how many values have parts before it, and none behind it
	// tombstones are those after it, and numbers the commits that wrote the counters in their ranges.
	tombstones *rangetombstone.Set
	numbers    map[string]uint64
}

// order gives those who do not conflict their numbers, and tells the Observer.
func (c *committer) order(all []*pending) *group {
	c.mu.Lock()
	defer c.mu.Unlock()
	g := &group{committer: c, sums: map[string]int64{}, sequence: c.engine.views.sequence(), number: c.mu.number, millis: c.mu.time,
		tombstones: c.tombstones, numbers: map[string]uint64{}}
	c.mu.claims.Forget(c.engine.open.horizon(&c.engine.views))
	for _, p := range all {
		if !p.ordered && (c.mu.claims.Conflict(p.begin, p.Claims()) || p.begin < c.mu.late && p.does()) {
			p.err = kv.ErrConflict
			g.refused = append(g.refused, p)
			continue
		}
		if p.drop != nil {
			g.tombstones = g.tombstones.Without(p.drop.Range, p.drop.Number)
			g.others = append(g.others, p)
			continue
		}
		if !p.writes() {
			if len(p.Claims()) > 0 {
				g.sequence++
				c.mu.claims.Record(g.sequence, p.Claims())
			}
			g.others = append(g.others, p)
			continue
		}
		if len(p.Ranges()) > 0 && g.tombstones.Len() >= maxTombstones {
			p.err = kv.ErrTooLarge
			g.refused = append(g.refused, p)
			continue
		}
		if p.ordered && p.Number != g.number+1 {
			p.err = fmt.Errorf("tikvkv: apply: %w: it is %d, and the next is %d", kv.ErrOrder, p.Number, g.number+1)
			g.refused = append(g.refused, p)
			continue
		}
		g.sequence++
		g.number++
		c.stamp(p, g)
		if c.observer != nil {
			c.observer.Ordered(p.Commit)
		}
		c.mu.claims.Record(g.sequence, p.Claims())
		noteRows(c.engine.rows, p.Commit, g.sequence)
		g.add(p)
	}
	c.mu.time = g.millis
	return g
}

// writes says whether anything of a commit is stored, and does whether it may be in conflict: who has only read is not.
func (p *pending) writes() bool {
	return p.Len() > 0 || len(p.Counters()) > 0 || len(p.Ranges()) > 0 || len(p.Stamped) > 0
}

func (p *pending) does() bool { return p.writes() || len(p.Claims()) > 0 }

// stamp gives a Commit its number and its time, unless it came with them.
func (c *committer) stamp(p *pending, g *group) {
	now := g.millis
	switch {
	case p.ordered:
		now = p.Time
	case c.observer != nil:
		now = c.observer.Now()
	}
	g.millis = max(now, g.millis)
	p.Number, p.Time = g.number, g.millis
}

// add adds up the counters of a commit, and notes what it deletes in ranges and what it writes in those of tombstones.
func (g *group) add(p *pending) {
	c := g.committer
	g.delete(p)
	for _, added := range p.Counters() {
		key := string(added.Key)
		sum, known := g.sums[key]
		if !known && !isIn(p.Ranges(), added.Key) {
			sum = c.counters[key]
		}
		g.sums[key] = sum + added.Delta
		if g.wrote(added.Key) {
			g.numbers[key] = p.Number
		}
	}
	g.commits = append(g.commits, p)
}

func isIn(ranges []kv.Range, key []byte) bool {
	return slices.ContainsFunc(ranges, func(r kv.Range) bool { return r.Contains(key) })
}

// delete makes tombstones of the ranges that a commit deletes. They come before all else that it writes.
func (g *group) delete(p *pending) {
	space := g.committer.engine.space
	for _, r := range p.Ranges() {
		from, to := space.bounds(r.Start, r.End)
		g.tombstones = g.tombstones.Deleted(kv.Range{Start: from, End: to}, p.Number, g.committer.isRemoving)
	}
	if g.tombstones.Len() == 0 {
		return
	}
	p.Each(func(op kv.Op) { g.set(op) })
	for _, op := range p.Stamped {
		g.set(op)
	}
}

func (g *group) set(op kv.Op) {
	if !op.Delete {
		g.wrote(op.Key)
	}
}

// wrote notes that something is written at key, and says whether it is in the range of a tombstone.
func (g *group) wrote(key []byte) bool {
	stored := g.committer.engine.space.pair(key)
	_, covered := g.tombstones.Covering(stored)
	if covered {
		g.tombstones = g.tombstones.Wrote(stored)
	}
	return covered
}

// isRemoving says whether the keys of a tombstone are being removed. The caller holds turn.
func (c *committer) isRemoving(t rangetombstone.Tombstone) bool { return t.Number == c.removing.Number }

// value is what the group's slot holds.
func (g *group) value() slotValue { return slotValue{number: g.number, millis: g.millis} }

// fill puts all that the group writes into a transaction of TiKV. It may be called again.
func (g *group) fill(t *transaction.KVTxn) (err error) {
	if err := g.findParts(t); err != nil {
		return err
	}
	space := g.committer.engine.space
	g.each(func(p *pending, op kv.Op) { err = errors.Join(err, g.put(t, p.Number, op)) })
	for key, sum := range g.sums {
		stored := encodeCounter(sum)
		if number, numbered := g.numbers[key]; numbered {
			stored = encodeNumber(number, stored)
		}
		err = errors.Join(err, t.Set(space.pair([]byte(key)), stored))
	}
	return errors.Join(err, g.putTombstones(t))
}

// each calls f for all writes of the group.
func (g *group) each(f func(p *pending, op kv.Op)) {
	for _, p := range g.commits {
		p.Each(func(op kv.Op) { f(p, op) })
		for _, op := range p.Stamped {
			f(p, op)
		}
	}
}

// findParts has it be known how many parts values have before the group, as of when the transaction began: who changes that meanwhile is in conflict with it.
func (g *group) findParts(t *transaction.KVTxn) (err error) {
	e := g.committer.engine
	var keys [][]byte
	g.each(func(_ *pending, op kv.Op) { keys = append(keys, op.Key) })
	g.shortened = 0
	g.parts, err = e.partsOf(e.at(t), keys)
	return err
}

// putTombstones writes those that are different after the group.
func (g *group) putTombstones(t *transaction.KVTxn) error {
	return g.committer.engine.space.putTombstones(t, g.committer.tombstones, g.tombstones)
}

// put is one write, with the parts of a long value, and without those that the one before had.
func (g *group) put(t *transaction.KVTxn, number uint64, op kv.Op) error {
	e, key := g.committer.engine, string(op.Key)
	space := e.space
	had := g.parts[key]
	var parts [][]byte
	var err error
	if op.Delete {
		err = t.Delete(space.pair(op.Key))
	} else {
		var stored []byte
		stored, parts = encodeValue(op.Value)
		pair := space.pair(op.Key)
		if _, covered := g.tombstones.Covering(pair); covered {
			stored = encodeNumber(number, stored)
		}
		err = t.Set(pair, stored)
	}
	for i, part := range parts {
		err = errors.Join(err, t.Set(space.part(op.Key, i), part))
	}
	for i := len(parts); i < had; i++ {
		err = errors.Join(err, t.Delete(space.part(op.Key, i)))
	}
	switch {
	case len(parts) > 0:
		e.longs.add(op.Key)
		g.parts[key] = len(parts)
	case had > 0:
		g.shortened++
		delete(g.parts, key)
	}
	return err
}

// finish makes a group visible.
func (c *committer) finish(g *group, v view) {
	changed := g.tombstones != c.tombstones
	publish := func() { c.engine.views.publish(v) }
	if len(g.commits) > 0 || changed {
		see, told := publish, c.tell(g, v.ts)
		publish = func() { c.engine.feed.add(told, v.ts, g.number, g.millis, see) }
	}
	for _, p := range g.commits {
		for _, r := range p.Ranges() { // of which all is deleted, and nothing else is in the group
			maps.DeleteFunc(c.counters, func(key string, _ int64) bool { return r.Contains([]byte(key)) })
		}
	}
	for key, sum := range g.sums {
		if len(c.counters) >= maxCounters {
			clear(c.counters)
		}
		c.counters[key] = sum
	}
	c.tombstones = g.tombstones
	if stale := c.engine.longs.remove(g.shortened); stale || changed {
		c.engine.reclaims.poke()
	}
	if c.observer != nil {
		for _, p := range g.commits {
			c.observer.Appears(p.Commit)
		}
	}
	publish()
	c.groups.Add(1)
	c.written.Add(int64(len(g.commits)))
	for _, p := range g.commits {
		c.mu.Lock()
		c.mu.number = p.Number
		c.mu.Unlock()
		if c.observer != nil {
			c.observer.Visible(p.Commit)
		}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.mu.stalled = nil
	if slices.ContainsFunc(g.commits, func(p *pending) bool { return p.over }) {
		v.sequence++ // of those who begin now, who know all that the Observer was told
		c.engine.views.publish(v)
		c.mu.late = v.sequence
	}
	c.endGroup(g, nil)
}

// endGroup tells those who wait. The caller holds mu.
func (c *committer) endGroup(g *group, err error) {
	for _, p := range g.commits {
		c.end(p, err)
	}
	for _, p := range g.others {
		c.end(p, err)
	}
	for _, p := range g.refused { // now: to try again before would have been in vain
		c.end(p, p.err)
	}
}

// stall is called while a group is tried for long: those who wait for it cannot be told how it will end.
func (c *committer) stall(g *group) func(tried time.Duration, why error) {
	return func(tried time.Duration, why error) {
		if tried < stallAfter {
			return
		}
		c.mu.Lock()
		defer c.mu.Unlock()
		if c.mu.stalled == nil {
			c.log.Warn("Commits wait for the TiKV cluster", "error", why)
		}
		c.mu.stalled = why
		c.refuse(unavailable(why))
		c.leaveGroup(g, unavailable(why))
	}
}

// leaveGroup tells those who wait for what is written that nobody knows what becomes of it. The caller holds mu.
func (c *committer) leaveGroup(g *group, why error) {
	for _, p := range slices.Concat(g.commits, g.others) {
		if !p.over {
			c.end(p, p.undetermined(why))
		}
	}
	for _, p := range g.refused {
		c.end(p, p.err)
	}
}

// fail ends the committer: what was ordered cannot be written any more.
func (c *committer) fail(g *group, err error) {
	c.mu.Lock()
	if c.mu.closed == nil {
		c.mu.closed = err
	}
	c.refuse(err)
	c.endGroup(g, fmt.Errorf("%w: %w", kv.ErrUndetermined, err))
	c.mu.Unlock()
	c.engine.fail(err)
}

func (c *committer) endAll(all []*pending, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, p := range all {
		c.end(p, err)
	}
}

// loadCounters has the sums of all counters that a group adds to be known.
func (c *committer) loadCounters(group []*pending) error {
	if len(c.counters) >= maxCounters {
		clear(c.counters)
	}
	var keys [][]byte
	wanted := map[string]bool{}
	for _, p := range group {
		for _, added := range p.Counters() {
			key := string(added.Key)
			if _, known := c.counters[key]; !known && !wanted[key] {
				wanted[key] = true
				keys = append(keys, c.engine.space.pair(added.Key))
			}
		}
	}
	if len(keys) == 0 {
		return nil
	}
	s, err := c.engine.look()
	if err != nil {
		return err
	}
	defer s.Close()
	found, err := s.fetchMany(keys)
	if err != nil {
		return err
	}
	for _, stored := range keys {
		sum := int64(0)
		if value, ok := found[string(stored)]; ok {
			if sum, err = decodeCounter(value); err != nil {
				return err
			}
		}
		c.counters[string(stored[len(c.engine.space.first):])] = sum
	}
	return nil
}

// conflicts says whether key was claimed since begin.
func (c *committer) conflicts(begin uint64, key []byte) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.mu.claims.Conflict(begin, [][]byte{key})
}

func (c *committer) last() (number uint64, millis int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.mu.number, c.mu.time
}

// stalled says why commits wait for the cluster; nil when they do not.
func (c *committer) stalledBy() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.mu.stalled
}
