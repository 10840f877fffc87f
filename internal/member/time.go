package member

import (
	"math"
	"sync"
	"sync/atomic"
	"time"

	"github.com/ebbdb/ebb/internal/clock"
)

// The time of a replica set is its primary's. A member that follows does not look at a clock of its own to see what has expired: it goes by
// the times of the commits that it has applied, and by what the primary tells beside them: a time, and the number of the last commit that
// was ordered before it. Its time moves there when it has applied that commit. A new primary's clock goes on from where that of the one before
// is by now, as far as anybody can know, and stands still as long as its machine's is behind; it does so too when that is set back.

// followedTime is the time of a member that follows.
type followedTime struct {
	clock  clock.Clock // whose monotonic time counts
	mu     sync.Mutex  // guards all below
	millis int64
	since  time.Duration // when it became that
	number uint64        // of the last commit applied
	told   []toldTime
	heard  time.Duration // when the primary has told something last
	// applying is the time of the last commit that was begun to be applied: what it deletes may be gone before the time of the member is that.
	applying int64
	// foreign says that the time is that of a store that is not the set's, and goes: of a server that joins.
	foreign bool
}

// toldTime is a time of the primary's, and the commit behind which it holds.
type toldTime struct {
	number uint64
	millis int64
}

// maxToldTimes bounds those that are kept of a primary far ahead; the younger ones count.
const maxToldTimes = 64

// begin has the time be at least that of a store's last commit, or just that where the store before was not the set's.
func (t *followedTime) begin(number uint64, millis int64, foreign bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.number, t.told = number, nil
	if t.foreign {
		t.millis, t.applying = math.MinInt64, math.MinInt64
	}
	t.foreign = foreign
	t.raise(millis)
}

func (t *followedTime) isForeign() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.foreign
}

// applies takes note of a commit that is about to be applied.
func (t *followedTime) applies(millis int64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.applying = max(t.applying, millis)
}

// seen is the time of the last commit of which anybody may have seen something.
func (t *followedTime) seen() int64 {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.applying
}

// applied takes note of a commit.
func (t *followedTime) applied(number uint64, millis int64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.number = number
	t.raise(millis)
	t.settle()
}

// hear takes note of what the primary tells.
func (t *followedTime) hear(number uint64, millis int64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(t.told) >= maxToldTimes {
		t.told = append(t.told[:0], t.told[len(t.told)/2:]...)
	}
	t.told, t.heard = append(t.told, toldTime{number, millis}), clock.Monotonic(t.clock)
	t.settle()
}

func (t *followedTime) settle() {
	n := 0
	for n < len(t.told) && t.told[n].number <= t.number {
		t.raise(t.told[n].millis)
		n++
	}
	t.told = append(t.told[:0], t.told[n:]...)
}

// raise has the time be at least millis.
func (t *followedTime) raise(millis int64) {
	if millis > t.millis {
		t.millis, t.since = millis, clock.Monotonic(t.clock)
	}
}

// by is what the time of the primary is by now: what is known of it, and what has passed here since. The way of the message lies between.
func (t *followedTime) by() time.Time {
	t.mu.Lock()
	defer t.mu.Unlock()
	return time.UnixMilli(t.millis).Add(clock.Monotonic(t.clock) - t.since)
}

func (t *followedTime) now() int64 {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.millis
}

// followerClock is the clock of a database that follows: its wall time is the primary's, and what passes passes here.
type followerClock struct {
	clock.Clock
	time *followedTime
}

func (c followerClock) Now() time.Time { return time.UnixMilli(c.time.now()) }

func (c followerClock) Read() (wall time.Time, monotonic time.Duration) {
	_, monotonic = c.Clock.Read()
	return c.Now(), monotonic
}

// leaderClock is the clock of a database that leads: the machine's, but never before what the set's time was when it began, nor back. The others
// have no time but that of its commits, which do not go back either.
//
// Nor does it run ahead of what others can know: where the machine's clock is set forward, or was ahead when it began, it goes on only when a
// commit of that time is at a majority. A primary that is cut off then has hidden nothing that the others would show again. The commits are of
// the machine's time at once.
type leaderClock struct {
	clock.Clock
	*leaderTime
}

type leaderTime struct {
	latest atomic.Int64 // that was told, in nanoseconds since the epoch
	// known is the latest time that a majority knows, less the monotonic time when it was that, in nanoseconds, and began what it was first.
	known atomic.Int64
	began int64
	// committed is the latest time that a commit was given, in nanoseconds since the epoch.
	committed atomic.Int64
	stands    standing
}

// maxUnknown is how far a primary's time may be ahead of what the others know: clocks do not run alike. It is less than they let themselves
// be told by clients.
const maxUnknown = maxHeard / 2

func newLeaderClock(c clock.Clock, since time.Time) leaderClock {
	l := leaderClock{c, &leaderTime{began: since.UnixNano() - int64(clock.Monotonic(c))}}
	l.latest.Store(since.UnixNano())
	l.known.Store(l.began)
	return l
}

func (c leaderClock) Now() time.Time {
	now, _ := c.Read()
	return now
}

func (c leaderClock) Read() (wall time.Time, monotonic time.Duration) {
	wall, monotonic = c.Clock.Read()
	told := raise(&c.latest, c.stands.bound(min(wall.UnixNano(), c.known.Load()+int64(monotonic+maxUnknown)), monotonic))
	return time.Unix(0, c.stands.bound(told, monotonic)), monotonic
}

// isHeldUp says whether the machine's clock is further than others know.
func (c leaderClock) isHeldUp() bool {
	wall, monotonic := c.Clock.Read()
	return wall.UnixNano() > c.known.Load()+int64(monotonic+maxUnknown)
}

// CommitTime implements storage.CommitClock.
func (c leaderClock) CommitTime() time.Time {
	wall, monotonic := c.Clock.Read()
	nanos := c.stands.bound(max(c.latest.Load(), wall.UnixNano()), monotonic)
	raise(&c.committed, nanos)
	return time.Unix(0, c.stands.bound(nanos, monotonic))
}

// confirm takes note of a time that a majority knows.
func (c leaderClock) confirm(millis int64) {
	known := millis*int64(time.Millisecond) - int64(clock.Monotonic(c.Clock))
	for old := c.known.Load(); known > old && !c.known.CompareAndSwap(old, known); old = c.known.Load() {
	}
}

// freshTime is for how long what the primary has told of its time is news.
const freshTime = 10 * tellEvery

// isFresh says whether all that the primary has told counts, and it has told something lately.
func (t *followedTime) isFresh() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.number > 0 && len(t.told) == 0 && clock.Monotonic(t.clock)-t.heard <= freshTime
}

// clockFor is the clock of a database with a role.
func (m *member) clockFor(r Role) clock.Clock {
	if r.Kind == Leader {
		c := newLeaderClock(m.group.o.Clock, m.time.by())
		m.leader.Store(&c)
		return c
	}
	if c := m.leader.Swap(nil); c != nil { // what it has hidden stays so here
		m.time.lead(0, c.latest.Load()/int64(time.Millisecond))
	}
	return followerClock{m.group.o.Clock, &m.time}
}

// HearTime implements command.Group.
func (g *Group) HearTime(millis int64) {
	if m := g.running(); m != nil {
		if c := m.leader.Load(); c != nil {
			c.hear(time.UnixMilli(millis))
		}
	}
}

// maxHeard is how far ahead of the machine's clock a client may bring the set's time, and of what the set's was when the member began to lead and
// has passed since, where its machine's is behind. It is measured by these alone: by the set's time, who brings one again and again would move
// it on without end.
const maxHeard = 10 * time.Second

// hear has the clock be no earlier than t, unless that is too far ahead.
func (c leaderClock) hear(t time.Time) {
	wall, monotonic := c.Clock.Read()
	if nanos := t.UnixNano(); nanos-max(wall.UnixNano(), c.began+int64(monotonic)) <= int64(maxHeard) {
		raise(&c.latest, c.stands.bound(nanos, monotonic))
	}
}

// SeenTime implements command.Group.
func (g *Group) SeenTime() int64 {
	m := g.running()
	if m == nil || m.leader.Load() != nil { // the time of one that leads is later than anything it has deleted
		return math.MinInt64
	}
	return m.time.seen()
}

// IsCurrent implements command.Group.
func (g *Group) IsCurrent() bool {
	m := g.running()
	return m != nil && (m.leader.Load() != nil || m.time.isFresh())
}

// tellEvery is how often a primary tells its time.
const tellEvery = 100 * time.Millisecond

// tellTime has a primary tell its time to all, until ctx ends.
func (m *member) tellTime() {
	for clock.Wait(m.ctx, m.group.o.Wall, tellEvery) == nil {
		m.mu.Lock()
		leads := m.mu.term != 0
		m.mu.Unlock()
		if !leads {
			m.awake() // to look whether the configuration is another one
		} else {
			m.tellOwnTime()
		}
	}
}

// tellOwnTime tells the time of a database that leads, unless it is about to give way to another.
func (m *member) tellOwnTime() {
	d := m.TryEnter()
	if d == nil {
		return
	}
	defer d.Leave()
	if d.Role().Kind != Leader {
		return
	}
	now := d.Now()
	number := m.Engine().Ordered(now)
	m.links.tellTime(number, now)
	m.time.lead(number, now)
	if c := m.leader.Load(); c != nil && c.isHeldUp() && m.noting.CompareAndSwap(false, true) {
		m.ended.Go(m.noteTime)
	}
}

// noteTime has a commit tell the others how far the machine's clock is, which lets the leader's go on.
func (m *member) noteTime() {
	defer m.noting.Store(false)
	d := m.TryEnter()
	if d == nil {
		return
	}
	defer d.Leave()
	if err := d.NoteTime(m.ctx); err != nil && m.ctx.Err() == nil {
		m.group.o.Log.For("REPL").Debug("The time could not be noted", "error", err.Error())
	}
}

// lead keeps the time of a member that leads, for when it does not any more.
func (t *followedTime) lead(number uint64, millis int64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.number = max(t.number, number)
	t.raise(millis)
}
