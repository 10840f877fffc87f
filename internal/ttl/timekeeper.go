package ttl

import (
	"fmt"
	"log/slog"
	"math"
	"sync"
	"sync/atomic"
	"time"

	"github.com/ebbdb/ebb/internal/clock"
)

// timekeeper says whether the clock is to be trusted. Hiding follows the clock whatever it says, since that can be taken back;
// deleting cannot, so nothing is deleted while the wall time is further ahead than it should be: of what the monotonic time
// has led to since the wall time was trusted last, or, after a start, of the latest time that the store knows. A machine with
// a wrong battery clock, a server that was down for a day and a copy of old data all look like that. After a while without
// another such step the wall time is believed.
//
// A wall time that lies behind holds nothing up. But where it was turned back by less than a minute, what was hidden stays so:
// until it has caught up, hiding goes by where it was.
type timekeeper struct {
	clock  clock.Clock
	params *Parameters
	log    *slog.Logger
	floor  atomic.Pointer[hideFloor]
	// onTrust is called when the clock is trusted that was not.
	onTrust func()

	mu struct {
		sync.Mutex // guards the rest, and is held for moments only
		// trusted is the last moment that was believed; known says that there is one.
		trusted moment
		known   bool
		// suspect is the first moment that was not believed, while there is one.
		suspect  moment
		suspects bool
		// started says that trusted is of this run, and not what the store knew.
		started bool
		// seen is the latest time that was believed, unless it was corrected since.
		seen time.Time
		// told is closed when the last change has been logged; nil: there was none.
		told chan struct{}
	}
}

// moment is what both clocks showed at one.
type moment struct {
	wall time.Time
	ran  time.Duration
}

// at is what the wall time should be when the monotonic time is ran.
func (m moment) at(ran time.Duration) time.Time { return m.wall.Add(ran - m.ran) }

// hideFloor is what hiding goes by when the wall time lies a little behind: what it had come to before it was turned back, and
// the last look, which tells whether it was since.
type hideFloor struct {
	trusted moment
	stands  time.Time
}

// smallStep is how far the wall time may be turned back so that nothing that was hidden shows again.
const smallStep = time.Minute

func newTimekeeper(c clock.Clock, p *Parameters, log *slog.Logger, onTrust func()) *timekeeper {
	return &timekeeper{clock: c, params: p, log: log, onTrust: onTrust}
}

// begin takes note of the latest time that the store knows, in milliseconds.
func (k *timekeeper) begin(seen int64, known bool) {
	if !known {
		return
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	_, ran := k.clock.Read()
	at := time.UnixMilli(seen).UTC()
	k.mu.trusted, k.mu.known, k.mu.started, k.mu.seen = moment{at, ran}, true, false, at
}

// look compares the clocks. When the wall time is not believed, settles is how long that will last yet, and ahead how far it
// lies before what it should be. Nobody goes by what has changed before it is logged.
func (k *timekeeper) look() (settles, ahead time.Duration) {
	settles, ahead, change, told := k.compare()
	switch {
	case change.tell != nil:
		func() {
			defer close(told)
			change.tell()
		}()
		if change.trusts {
			k.onTrust()
		}
	case told != nil:
		<-told
	}
	return settles, ahead
}

// change is what a look has found.
type change struct {
	tell   func() // logs it; nil: nothing has changed
	trusts bool   // the clock is trusted that was not
}

// compare is look, but for what is to be done about a change. told is of the last one.
func (k *timekeeper) compare() (settles, ahead time.Duration, c change, told chan struct{}) {
	k.mu.Lock()
	defer k.mu.Unlock()
	settles, ahead, c = k.judge()
	if c.tell != nil {
		k.mu.told = make(chan struct{})
	}
	return settles, ahead, c, k.mu.told
}

func (k *timekeeper) judge() (settles, ahead time.Duration, c change) {
	now := k.read()
	if !k.mu.known {
		k.trust(now)
		return 0, 0, c
	}
	expected := k.mu.trusted.at(now.ran)
	ahead = now.wall.Sub(expected)
	if ahead <= k.params.clockStep() {
		if k.mu.suspects {
			c = change{trusts: true, tell: func() {
				k.log.Info("TTL: the clock is back where it should be, and trusted again", "wallTime", now.wall, "expectedTime", expected)
			}}
		}
		k.trust(now)
		return 0, 0, c
	}
	if another := now.wall.Sub(k.mu.suspect.at(now.ran)); !k.mu.suspects || another.Abs() > k.params.clockStep() {
		k.mu.suspect, k.mu.suspects = now, true
		c.tell = k.warning(now.wall, expected, k.mu.started)
	}
	settles = k.params.clockSettle() - (now.ran - k.mu.suspect.ran)
	if settles <= 0 {
		k.trust(now)
		warned := c.tell
		return 0, 0, change{trusts: true, tell: func() {
			if warned != nil {
				warned()
			}
			k.log.Info("TTL: the clock has not been turned again, and is trusted from now on", "wallTime", now.wall)
		}}
	}
	return settles, ahead, c
}

// read is the moment, without what Go's times carry along for the sake of subtractions that nobody can turn.
func (k *timekeeper) read() moment {
	wall, ran := k.clock.Read()
	return moment{wall.Round(0).UTC(), ran}
}

func (k *timekeeper) warning(wall, expected time.Time, started bool) func() {
	reason := "the clock was turned while the server ran"
	if !started {
		reason = "the data was in use last long before, or the machine's clock is wrong"
	}
	return func() {
		k.log.Warn("TTL: the clock is further ahead than it should be; nothing is deleted until it is trusted", "reason", reason, "wallTime", wall,
			"expectedTime", expected, "aheadSeconds", int64(wall.Sub(expected)/time.Second), "settleSeconds", int64(k.params.clockSettle()/time.Second))
	}
}

// trust believes the wall time.
func (k *timekeeper) trust(now moment) {
	stands := time.Time{}
	if f := k.floor.Load(); f != nil {
		stands = f.stands
	}
	if k.mu.known {
		was := k.mu.trusted.at(now.ran) // as far as hiding may have come
		if !k.mu.started {
			was = k.mu.seen
		}
		if behind := was.Sub(now.wall); behind > 0 && behind < smallStep && was.After(stands) {
			stands = was
		}
	}
	if stands.Sub(now.wall) >= smallStep { // it was corrected
		stands = time.Time{}
	}
	if now.wall.After(k.mu.seen) || k.mu.seen.Sub(now.wall) >= smallStep {
		k.mu.seen = now.wall
	}
	if stands.After(k.mu.seen) {
		k.mu.seen = stands
	}
	k.mu.trusted, k.mu.known, k.mu.started, k.mu.suspects = now, true, true, false
	k.floor.Store(&hideFloor{now, stands})
}

// hidesUpTo is a time, in milliseconds, up to which what has expired stays hidden although the wall time lies behind it;
// math.MinInt64 when it does not.
func (k *timekeeper) hidesUpTo() int64 {
	f := k.floor.Load()
	if f == nil {
		return math.MinInt64
	}
	now := k.read()
	if f.trusted.at(now.ran).Sub(now.wall) > stepAtLeast { // nobody has looked since it was turned back
		k.look()
		f = k.floor.Load()
	}
	up, wall := f.stands, now.wall
	if up.IsZero() || up.Sub(wall) >= smallStep {
		return math.MinInt64
	}
	return up.UnixMilli()
}

// stepAtLeast is what is taken for a step back: two clocks are never read alike.
const stepAtLeast = time.Millisecond

// latest is the latest time that was believed, for the store to keep; ok is false while the clock is not trusted.
func (k *timekeeper) latest() (millis int64, ok bool) {
	if settles, _ := k.look(); settles > 0 {
		return 0, false
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.mu.seen.UnixMilli(), true
}

// why says in words that the clock is not trusted; "" when it is.
func (k *timekeeper) why() string {
	settles, ahead := k.look()
	if settles <= 0 {
		return ""
	}
	return fmt.Sprintf("the clock is %d s further ahead than it should be (%s), and trusted in %d s (%s)",
		int64(ahead/time.Second), clockStepName, int64((settles+time.Second-1)/time.Second), clockSettleName)
}
