package member

import (
	"sync"
	"sync/atomic"
	"time"
)

// standing is where the clock of a leader stands still: neither it nor what is committed has a later time, so that nobody in the set hides more.
// Many read the clock, and few have it stand still, so a reader takes no lock: it notes the time that it is about to tell before it looks for this
// one, and who has it stand still looks at what was noted after that.
type standing struct {
	at    atomic.Int64 // in nanoseconds since the epoch; 0: it goes on
	until atomic.Int64 // the monotonic time at which it goes on in any case, in nanoseconds
	mu    sync.Mutex
	users int // guarded by mu
}

// maxStanding is how long a clock stands still at most, from the first on who asks for it.
const maxStanding = time.Second

// bound is a time in nanoseconds, or where the clock stands still if that is earlier.
func (s *standing) bound(nanos int64, monotonic time.Duration) int64 {
	if at := s.at.Load(); at != 0 && nanos > at && int64(monotonic) < s.until.Load() {
		return at
	}
	return nanos
}

// begin has the clock stand still at what latest says that was told.
func (s *standing) begin(monotonic time.Duration, latest func() int64) (at int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.users++
	if at := s.at.Load(); at != 0 && int64(monotonic) < s.until.Load() {
		return at
	}
	s.at.Store(0) // where it stood, if that was for too long: it does not go back there
	s.until.Store(int64(monotonic + maxStanding))
	for at = latest(); ; {
		s.at.Store(at)
		told := latest()
		if told <= at {
			return at
		}
		at = told
	}
}

func (s *standing) end() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.users--; s.users == 0 {
		s.at.Store(0)
	}
}

// StandStill implements storage.CommitClock.
func (c leaderClock) StandStill() (millis int64, goOn func()) {
	_, monotonic := c.Clock.Read()
	c.CommitTime()
	at := c.stands.begin(monotonic, func() int64 { return max(c.latest.Load(), c.committed.Load()) })
	return at / int64(time.Millisecond), sync.OnceFunc(c.stands.end)
}

// raise has what is kept be at least nanos, and returns what it is then.
func raise(kept *atomic.Int64, nanos int64) int64 {
	for {
		old := kept.Load()
		if nanos <= old {
			return old
		}
		if kept.CompareAndSwap(old, nanos) {
			return nanos
		}
	}
}
