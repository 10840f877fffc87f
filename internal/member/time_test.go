package member

import (
	"testing"
	"time"

	"github.com/ebbdb/ebb/internal/clock"
)

// TestTimeOfStoreThatGoes: a server that joins with a clock that is ahead goes by the set's time once it has the set's data. A member that gets a
// snapshot does not go back.
func TestTimeOfStoreThatGoes(t *testing.T) {
	f := followedTime{clock: clock.NewFake(time.UnixMilli(0))}
	f.begin(13, 9000, true)
	f.begin(40, 5000, false)
	if now := f.now(); now != 5000 {
		t.Errorf("with the set's data the time is %d", now)
	}
	f.hear(40, 5500)
	f.begin(60, 5200, false)
	if now := f.now(); now != 5500 {
		t.Errorf("with a snapshot the time is %d, and was 5500", now)
	}
}

// TestLeadersTimeDoesNotGoBack: the time of a member that leads begins where the set's is, and stands still while the machine's clock is behind.
func TestLeadersTimeDoesNotGoBack(t *testing.T) {
	machine := clock.NewFake(time.UnixMilli(5000))
	c := newLeaderClock(machine, time.UnixMilli(7000))
	for _, step := range []struct {
		by   time.Duration
		want int64
	}{{0, 7000}, {time.Second, 7000}, {3 * time.Second, 9000}, {-2 * time.Second, 9000}, {time.Second, 9000}, {2 * time.Second, 10_000}} {
		machine.Step(step.by)
		if wall, _ := c.Read(); c.Now().UnixMilli() != step.want || wall.UnixMilli() != step.want {
			t.Errorf("after a step of %v it is %d, want %d", step.by, c.Now().UnixMilli(), step.want)
		}
	}
}

// TestHeardTime: clients bring the set's time forward by so much, however often they try.
func TestHeardTime(t *testing.T) {
	machine := clock.NewFake(time.UnixMilli(5000))
	c := newLeaderClock(machine, time.UnixMilli(5000))
	for range 100 {
		c.hear(c.Now().Add(maxHeard / 3))
	}
	if now := c.Now().UnixMilli(); now <= 5000 || now > 5000+maxHeard.Milliseconds() {
		t.Errorf("the time is %d", now)
	}
	was := c.Now()
	c.hear(was.Add(-time.Second))
	c.hear(machine.Now().Add(maxHeard + time.Millisecond))
	if !c.Now().Equal(was) {
		t.Errorf("the time went from %v to %v", was, c.Now())
	}
}

// TestFreshTime: a member has its primary's time when it has applied what that had, and has heard of it lately.
func TestFreshTime(t *testing.T) {
	machine := clock.NewFake(time.UnixMilli(5000))
	f := followedTime{clock: machine}
	f.begin(40, 5000, false)
	f.hear(41, 6000)
	if f.isFresh() {
		t.Error("it is fresh though a commit is missing")
	}
	f.applied(41, 5900)
	if !f.isFresh() {
		t.Error("it is not fresh though nothing is missing")
	}
	machine.Advance(freshTime + time.Millisecond)
	if f.isFresh() {
		t.Error("it is fresh though nothing was heard for long")
	}
	f.hear(41, 6000) // the primary's clock stands still
	if !f.isFresh() {
		t.Error("it is not fresh though the primary has told that its time stands still")
	}
}
