package member

import (
	"context"
	"testing"
	"time"

	"github.com/ebbdb/ebb/internal/clock"
	"github.com/ebbdb/ebb/internal/kv"
	"github.com/ebbdb/ebb/internal/raftlog"
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

// applyingDatabase follows. It sees what its member tells while it applies a commit.
type applyingDatabase struct {
	Database
	member *member
	told   int64
}

func (*applyingDatabase) Leave()     {}
func (*applyingDatabase) Role() Role { return Role{Kind: Follower} }

func (d *applyingDatabase) Apply(context.Context, *kv.Commit) error {
	d.told = d.member.time.seen()
	return nil
}

// TestSeenTime: what a commit deletes may be gone before the member's time is that of the commit. What clients are told is not earlier.
func TestSeenTime(t *testing.T) {
	m := &member{}
	m.time.clock = clock.NewFake(time.UnixMilli(0))
	m.time.begin(40, 5000, false)
	commit, err := (&kv.Commit{Number: 41, Time: 6000, Writes: &kv.WriteList{}}).AppendBinary(nil)
	if err != nil {
		t.Fatal(err)
	}
	d := &applyingDatabase{member: m}
	if err := m.applyTo(t.Context(), d, raftlog.Entry{Commit: commit}); err != nil {
		t.Fatal(err)
	}
	if d.told != 6000 || m.time.now() != 6000 {
		t.Errorf("%d was told while a commit of 6000 was applied, and the time is %d", d.told, m.time.now())
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

// TestTimeThatOthersKnow: a leader's time runs ahead of what a majority knows by no more than is bearable; what is committed has the machine's at
// once.
func TestTimeThatOthersKnow(t *testing.T) {
	machine := clock.NewFake(time.UnixMilli(5000))
	c := newLeaderClock(machine, time.UnixMilli(5000))
	unknown, hour := maxUnknown.Milliseconds(), time.Hour.Milliseconds()
	expect := func(what string, now, commit int64) {
		t.Helper()
		if got := c.Now().UnixMilli(); got != now {
			t.Errorf("%s it is %d, want %d", what, got, now)
		}
		if got := c.CommitTime().UnixMilli(); got != commit {
			t.Errorf("%s commits are of %d, want %d", what, got, commit)
		}
	}
	expect("at first", 5000, 5000)
	machine.Step(time.Hour)
	expect("set forward", 5000+unknown, 5000+hour)
	machine.Advance(time.Second)
	expect("a second later", 6000+unknown, 6000+hour)
	c.confirm(5000 + hour)
	expect("when others know", 6000+hour, 6000+hour)
	machine.Step(-time.Hour)
	expect("set back", 6000+hour, 6000+hour)
	c.confirm(5000)
	machine.Step(2 * time.Hour)
	machine.Advance(time.Minute)
	expect("when others know an earlier time", 5000+hour+61_000-1000+unknown, 66_000+2*hour)
}

// TestHeardTimeBehind: a leader whose machine's clock is behind takes what the one before has told, which was ahead of what this one knows.
func TestHeardTimeBehind(t *testing.T) {
	machine := clock.NewFake(time.UnixMilli(5000))
	since := time.UnixMilli(5000).Add(time.Hour)
	c := newLeaderClock(machine, since)
	machine.Advance(time.Second)
	told := since.Add(time.Second + maxUnknown)
	if c.hear(told); !c.Now().Equal(told) {
		t.Errorf("it is %v, want %v", c.Now(), told)
	}
	for range 100 {
		c.hear(c.Now().Add(maxHeard / 3))
	}
	if now := c.Now(); now.Sub(since) > time.Second+maxHeard {
		t.Errorf("it was brought forward by %v", now.Sub(since))
	}
}

// TestLeaderStandsStill: a leader's time, that of commits, and what clients bring stand still together, until the last who wants that is done, or for
// as long as is bearable.
func TestLeaderStandsStill(t *testing.T) {
	machine := clock.NewFake(time.UnixMilli(5000))
	c := newLeaderClock(machine, time.UnixMilli(5000))
	expect := func(what string, want int64) {
		t.Helper()
		if now, commit := c.Now().UnixMilli(), c.CommitTime().UnixMilli(); now != want || commit != want {
			t.Errorf("%s it is %d, and commits are of %d; want %d", what, now, commit, want)
		}
	}
	machine.Advance(10 * time.Millisecond)
	at, goOn := c.StandStill()
	if at != 5010 {
		t.Errorf("it stands still at %d", at)
	}
	machine.Advance(10 * time.Millisecond)
	c.hear(time.UnixMilli(5020))
	expect("while it stands still", 5010)
	again, goOnAgain := c.StandStill()
	if again != 5010 {
		t.Errorf("for the second it stands still at %d", again)
	}
	goOn()
	goOn() // does nothing more
	expect("while the second wants it", 5010)
	goOnAgain()
	expect("behind both", 5020)
	_, goOn = c.StandStill()
	machine.Advance(maxStanding)
	expect("for too long", 5020+maxStanding.Milliseconds())
	goOn()
	machine.Step(time.Hour) // commits are of that time, which this member does not tell yet
	commit := c.CommitTime().UnixMilli()
	if at, goOn = c.StandStill(); at != commit {
		t.Errorf("it stands still at %d, and others may know %d", at, commit)
	}
	goOn()
}
