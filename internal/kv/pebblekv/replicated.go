package pebblekv

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/ebbdb/ebb/internal/clock"
	"github.com/ebbdb/ebb/internal/kv"
	"github.com/ebbdb/ebb/internal/kv/claims"
)

// An engine may be a member of a replica set. Then it either follows, and takes only what comes by Apply; or it leads: its Commits are ordered
// here and appended to a log (kv.Log), wait in a line, and are applied and visible when the log says that they are committed (Confirm). Where
// that will never be known, because another member leads, those in the line fail as undetermined (Follow).
//
// Several are in the line at a time. What a transaction claims is registered when it is ordered, under a sequence that no snapshot has yet: so
// who would overwrite what waits in the line meets a conflict, as with what is visible; it is told of that when the other one can be seen, since
// to try again before would be in vain. Counters are added up when the Commit is applied.
//
// The log is what makes commits durable: the store under it is not synced for them, and after a crash gets again what it has lost. The tables
// that Load and Replace would put into the store are no part of the log, so a member says that it has no such thing (Capabilities).
//
// Invariants: the line has the Commits that follow the visible one, without a gap, in the order of the log; where one of them is to be alone it
// is the only one; a member that follows has nobody in the line.

// line is where the Commits of a member wait for the log. It is guarded by committer.mu.
type line struct {
	log     kv.Log // nil: it follows
	why     error  // it does
	waiting []*pending
	bytes   int
	alone   bool      // the one that waits is to be alone
	paused  bool      // nobody is let in
	moved   sync.Cond // told when somebody leaves
	behind  int       // how many wait for that
}

// What may wait in the line at once. One Commit that is larger may too, alone.
const (
	maxLine      = 1 << 12
	maxLineBytes = 64 << 20
)

// MaxReplicatedBytes is the largest transaction of a member of a replica set.
const MaxReplicatedBytes = 64 << 20

// errNoTables is for who has not asked for the engine's Capabilities.
var errNoTables = errors.New("pebblekv: a member of a replica set takes no tables")

// turn is what a Commit in the line waits for.
type turn struct {
	over chan struct{}
	err  error // set before over is closed
}

// Follow has the engine be a member that follows: what is in the line, and all that would be committed here from now on, fails with why.
func (e *Engine) Follow(why error) {
	c := e.commits
	c.mu.Lock()
	l := &c.mu.line
	left := l.waiting
	l.log, l.why, l.waiting, l.bytes, l.alone, l.paused = nil, why, nil, 0, false, false
	// What was ordered and never is committed is of no time.
	c.mu.time = c.mu.shown
	if len(left) > 0 { // who began before what can be seen now has to fail, and nobody else
		c.mu.claims = claims.New()
		c.mu.claims.Raise(c.sequence.Load())
	}
	c.member.Store(true)
	c.mu.Unlock()
	l.moved.Broadcast()
	for _, t := range left {
		t.turn.err = undetermined(why)
		close(t.turn.over)
	}
}

// Lead has the engine be a member whose Commits go to a log, which has nothing any more that is not applied here.
func (e *Engine) Lead(log kv.Log) {
	c := e.commits
	c.mu.Lock()
	defer c.mu.Unlock()
	c.mu.line.log, c.mu.line.why = log, nil
	c.member.Store(true)
}

// Pause keeps a member that leads from ordering more, which waits meanwhile, and returns when nothing is in the line any more, or ctx ends.
// GoOn ends it, and so does Follow.
func (e *Engine) Pause(ctx context.Context) error {
	c := e.commits
	defer c.wakeAfter(ctx)()
	c.mu.Lock()
	defer c.mu.Unlock()
	c.mu.line.paused = true
	for len(c.mu.line.waiting) > 0 && ctx.Err() == nil {
		c.mu.line.wait()
	}
	return ctx.Err()
}

// IsFull says whether the disk has too little room for data to be added, or none at all. A member whose disk is full should not lead.
func (e *Engine) IsFull() bool { return e.room.isScarce() || e.room.isStuck() }

// IsDamaged says whether a file of the store is known to be damaged, since when it takes no writes. Such a member should not lead either.
func (e *Engine) IsDamaged() bool { return e.failure.sound() != nil }

// wakeAfter has those who wait for the line look again when ctx ends, until stop is called.
func (c *committer) wakeAfter(ctx context.Context) (stop func() bool) {
	return context.AfterFunc(ctx, func() {
		c.mu.Lock() // or who is about to wait would miss it
		c.mu.line.moved.Broadcast()
		c.mu.Unlock()
	})
}

// GoOn has a member that leads order commits again.
func (e *Engine) GoOn() {
	c := e.commits
	c.mu.Lock()
	defer c.mu.Unlock()
	c.mu.line.paused = false
	c.mu.line.moved.Broadcast()
}

// Confirm applies the first Commit in the line, which is committed. It must have the number. An error is the store's, which has failed then.
func (e *Engine) Confirm(number uint64) error {
	c := e.commits
	t, err := c.confirm(number)
	if t == nil {
		return err
	}
	c.snapshots.forget()
	t.turn.err = err
	close(t.turn.over)
	return err
}

// Ordered is the number of the youngest Commit, which may still be in the line. In an engine that leads no later one is of a time before now.
func (e *Engine) Ordered(now int64) (number uint64) {
	c := e.commits
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.mu.line.log != nil {
		c.mu.time = max(c.mu.time, now)
	}
	return c.number.Load() + uint64(len(c.mu.line.waiting))
}

func (c *committer) confirm(number uint64) (*pending, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.awaitTables() // of a checkpoint
	l := &c.mu.line
	if len(l.waiting) == 0 { // it has been told that it leads no more
		return nil, kv.ErrNotLeader
	}
	t := l.waiting[0]
	if t.Number != number {
		panic(fmt.Sprintf("pebblekv: commit %d is committed, and %d is the first in the line", number, t.Number))
	}
	l.waiting[0] = nil
	l.waiting = l.waiting[1:]
	l.bytes -= t.TotalSize()
	l.alone = false
	err := c.addUp(t.Counters(), t.Ranges())
	if err == nil {
		err = c.put(t, c.sequence.Load()+1)
	}
	if err != nil { // it is committed, and not here: nothing may come after it
		c.failure.set(fmt.Errorf("apply commit %d: %w", number, err))
		err = undetermined(err)
	}
	if l.behind > 0 {
		l.moved.Broadcast()
	}
	return t, err
}

// admitOrLineUp makes t visible at once or, in a member that leads, when the log has committed it. replicated says that the disk need not be
// waited for.
func (c *committer) admitOrLineUp(ctx context.Context, t *pending) (err error, replicated bool) {
	c.mu.Lock()
	if member := c.member.Load(); !member || t.ordered {
		defer c.mu.Unlock()
		return c.admit(t), member
	}
	err = c.lineUp(ctx, t)
	c.mu.Unlock()
	if err != nil || t.turn == nil {
		return err, true
	}
	return t.turn.await(ctx), true
}

// usualWait is how long a Commit in the line is waited for before anybody looks how long it may be: most have left it by then.
const usualWait = 20 * time.Millisecond

// await returns what becomes of the Commit, or *kv.Unsettled where the patience of whoever waits ends before.
func (t *turn) await(ctx context.Context) error {
	p := kv.PatienceOf(ctx)
	if p == nil {
		<-t.over
		return t.err
	}
	usual := clock.Wall().NewTimer(usualWait) // most are over before, and pay for nothing else
	select {
	case <-t.over:
		usual.Stop()
		return t.err
	case <-usual.C():
	}
	var impatient <-chan time.Time
	if p.Timeout > 0 {
		timer := p.Clock.NewTimer(p.Timeout)
		defer timer.Stop()
		impatient = timer.C()
	}
	var why error
	select {
	case <-t.over:
		return t.err
	case <-ctx.Done():
		why = context.Cause(ctx)
	case <-impatient:
		why = kv.ErrImpatient
	}
	select {
	case <-t.over: // as it is where the operation was ended because of what it tells
		return t.err
	default:
	}
	settle := func() error { <-t.over; return t.err }
	if p.Over != nil {
		p.Over(why)
		return settle()
	}
	return &kv.Unsettled{Why: why, Settle: settle}
}

// lineUp orders t and puts it into the line, or fails and leaves nothing behind. The caller holds mu.
func (c *committer) lineUp(ctx context.Context, t *pending) error {
	l := &c.mu.line
	alone := t.Meaning != nil && t.Meaning.Alone()
	size := t.TotalSize()
	impatient := false
	if l.why == nil && l.isFull(size, alone || t.batch == nil) {
		within, cancel := ctx, context.CancelFunc(func() {})
		if p := kv.PatienceOf(ctx); p != nil && p.Timeout > 0 {
			within, cancel = clock.WithTimeout(ctx, p.Clock, p.Timeout)
		}
		stop := c.wakeAfter(within)
		for l.why == nil && within.Err() == nil && l.isFull(size, alone || t.batch == nil) {
			l.wait()
		}
		stop()
		impatient = within.Err() != nil && l.isFull(size, alone || t.batch == nil)
		cancel()
	}
	switch {
	case l.why != nil:
		return l.why
	case ctx.Err() != nil: // nothing of it was written
		return ctx.Err()
	case impatient: // likewise
		return kv.ErrImpatient
	case size > MaxReplicatedBytes:
		return kv.ErrTooLarge
	}
	if err := c.failure.writable(); err != nil && t.batch != nil {
		return err
	}
	c.mu.claims.Forget(c.open.horizon(&c.sequence))
	if c.mu.claims.Conflict(t.begin, t.Claims()) {
		l.waitForAll(ctx, c)
		return kv.ErrConflict
	}
	sequence := c.sequence.Load() + uint64(len(l.waiting)) + 1
	c.mu.claims.Record(sequence, t.Claims())
	if t.batch == nil { // nobody is in the line
		c.sequence.Store(sequence)
		return nil
	}
	if err := c.stamp(t.Commit, false); err != nil {
		return err
	}
	c.announce(t.Commit)
	encoded, err := t.Commit.AppendBinary(make([]byte, 0, size+size/8+1<<10))
	if err != nil { // it has its number, and memory knows of it
		c.failure.set(err)
		return errors.Join(kv.ErrUndetermined, err)
	}
	t.turn = &turn{over: make(chan struct{})}
	l.waiting, l.alone = append(l.waiting, t), alone
	l.bytes += size
	l.log.Append(encoded)
	return nil
}

// isFull says whether one more of a size has to wait.
func (l *line) isFull(size int, alone bool) bool {
	return l.paused || len(l.waiting) > 0 && (alone || l.alone || len(l.waiting) >= maxLine || l.bytes+size > maxLineBytes)
}

// wait waits until somebody leaves the line. The caller holds mu, and has it again when it returns.
func (l *line) wait() {
	l.behind++
	l.moved.Wait()
	l.behind--
}

// waitForAll waits until all who are in the line have left it, or ctx ends. The caller holds mu, and has it again when it returns.
func (l *line) waitForAll(ctx context.Context, c *committer) {
	defer c.wakeAfter(ctx)()
	until := c.number.Load() + uint64(len(l.waiting))
	for c.number.Load() < until && len(l.waiting) > 0 && ctx.Err() == nil {
		l.wait()
	}
}

// awaitEmpty waits until nobody is in the line; the error is that of ctx, where it ends before. The caller holds mu, and has it again when it returns.
func (l *line) awaitEmpty(ctx context.Context, c *committer) error {
	if len(l.waiting) == 0 {
		return nil
	}
	defer c.wakeAfter(ctx)()
	for len(l.waiting) > 0 {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		l.wait()
	}
	return nil
}
