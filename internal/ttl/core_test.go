package ttl

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/ebbdb/ebb/internal/storage"
	"github.com/ebbdb/ebb/internal/testseed"
	"github.com/ebbdb/ebb/internal/ttl/policy"
)

// pile is a snapshot with so many records due, each a millisecond after the other.
type pile int

func (p pile) Due(_ *policy.Rule, now int64, after []byte, limit int) (ids []storage.RecordID, next []byte, err error) {
	from := 0
	if after != nil {
		from = int(after[0]) + 1
	}
	for i := from; i < int(p) && int64(i) <= now; i++ {
		ids = append(ids, storage.RecordID{byte(i)})
		if len(ids) == limit {
			return ids, ids[len(ids)-1], nil
		}
	}
	return ids, nil, nil
}

func TestProgressComesToAnEnd(t *testing.T) {
	rule := &policy.Rule{Seconds: 1}
	var p progress
	var got []int
	p.follow(rule)
	for !p.done() {
		n, err := p.stage(pile(10), rule, 6, 3)
		if err != nil || n > 3 {
			t.Fatal(n, err)
		}
		for len(p.staged) > 0 { // what is staged is taken before more is looked for
			if n, _ := p.stage(pile(10), rule, 6, 3); n != 0 {
				t.Fatalf("found %d while %d wait", n, len(p.staged))
			}
			got = append(got, int(p.staged[0][0]))
			p.take(1)
		}
	}
	if want := []int{0, 1, 2, 3, 4, 5, 6}; !slices.Equal(got, want) {
		t.Errorf("found %v, not %v", got, want)
	}
	if p.follow(rule); !p.done() {
		t.Error("the same rule begins again")
	}
	if p.follow(&policy.Rule{Seconds: 2}); p.done() {
		t.Error("another rule does not begin again")
	}
}

func TestProgressKeepsErrors(t *testing.T) {
	var p progress
	broken := errors.New("broken")
	if _, err := p.stage(brokenPile{broken}, &policy.Rule{}, 0, 0); !errors.Is(err, broken) || p.done() {
		t.Errorf("%v, done %v", err, p.done())
	}
}

type brokenPile struct{ err error }

func (p brokenPile) Due(*policy.Rule, int64, []byte, int) ([]storage.RecordID, []byte, error) {
	return nil, nil, p.err
}

func TestBudget(t *testing.T) {
	for _, c := range []struct {
		budget      budget
		docs, bytes int64
		time        time.Duration
		spent       bool
	}{
		{budget{}, math.MaxInt64, math.MaxInt64, math.MaxInt64, false},
		{budget{docs: 10}, 9, 0, 0, false},
		{budget{docs: 10}, 10, 0, 0, true},
		{budget{bytes: 10}, 5, 9, 0, false},
		{budget{bytes: 10}, 5, 10, 0, true},
		{budget{time: time.Second}, 5, 9, time.Second - 1, false},
		{budget{time: time.Second}, 5, 9, time.Second, true},
	} {
		if got := c.budget.spent(c.docs, c.bytes, c.time); got != c.spent {
			t.Errorf("%+v after %d docs, %d bytes, %v: %v", c.budget, c.docs, c.bytes, c.time, got)
		}
	}
}

// Three targets with so many visits of work each; the order of visits is the point.
func TestGoAround(t *testing.T) {
	for _, c := range []struct {
		work   [3]int
		rounds int // until the time is over
		order  string
		left   bool
	}{
		{[3]int{1, 1, 1}, 9, "abc", false},
		{[3]int{3, 1, 2}, 9, "abcaca", false},
		{[3]int{3, 1, 2}, 1, "abc", true},
		{[3]int{3, 1, 2}, 2, "abcac", true},
		{[3]int{1, 1, 1}, 1, "abc", false},
		{[3]int{2, 2, 1}, 2, "abcab", false},
	} {
		work, rounds := c.work, c.rounds
		var order strings.Builder
		left, err := goAround([]Target{{Index: 0}, {Index: 1}, {Index: 2}},
			func(target Target) (bool, error) {
				fmt.Fprintf(&order, "%c", 'a'+target.Index)
				work[target.Index]--
				return work[target.Index] > 0, nil
			},
			func() bool { rounds--; return rounds == 0 })
		if err != nil || order.String() != c.order || left != c.left {
			t.Errorf("%v for %d rounds: %s, left %v, %v; not %s, left %v", c.work, c.rounds, order.String(), left, err, c.order, c.left)
		}
	}
	over := errors.New("over")
	left, err := goAround([]Target{{}}, func(Target) (bool, error) { return false, over }, func() bool { return false })
	if !left || !errors.Is(err, over) {
		t.Errorf("an error: left %v, %v", left, err)
	}
}

// The agenda against a map that is searched.
func TestAgenda(t *testing.T) {
	seed := testseed.Of(t)
	r := rand.New(rand.NewPCG(seed, 0))
	var a agenda
	naive := map[uint32]int64{}
	for step := range 20_000 {
		c, at := uint32(r.IntN(20)), int64(r.IntN(100))
		switch r.IntN(4) {
		case 0, 1:
			a.note(c, at)
			if old, ok := naive[c]; !ok || at < old {
				naive[c] = at
			}
		case 2:
			a.forget(c)
			delete(naive, c)
		case 3:
			var due []uint32
			now := at / 4
			for c, at := range naive {
				if at <= now {
					due = append(due, c)
					delete(naive, c)
				}
			}
			slices.Sort(due)
			got := a.takeDue(now)
			slices.Sort(got)
			if !slices.Equal(got, due) {
				t.Fatalf("seed %d, step %d: due %v, not %v", seed, step, got, due)
			}
		}
		next, others := policy.Never, policy.Never
		for collection, at := range naive {
			if next = min(next, at); collection != c {
				others = min(others, at)
			}
		}
		if now := int64(r.IntN(100)); a.hasDue(now, c) != (others <= now) {
			t.Fatalf("seed %d, step %d: at %d, but for %d, %v is due; the others come up at %d", seed, step, now, c, a.hasDue(now, c), others)
		}
		if a.next() != next {
			t.Fatalf("seed %d, step %d: next %d, not %d", seed, step, a.next(), next)
		}
		if at, ok := naive[c]; ok && a.of(c) != at || !ok && a.of(c) != policy.Never {
			t.Fatalf("seed %d, step %d: collection %d comes up at %d, not %d", seed, step, c, a.of(c), at)
		}
	}
	a.note(1, policy.Never)
	if due := a.takeDue(policy.Never); len(due) != len(naive) {
		t.Error("never is noted")
	}
}

func TestRest(t *testing.T) {
	for took, want := range map[time.Duration]time.Duration{
		0: 0, 1: shortestRest, time.Millisecond: shortestRest, 100 * time.Millisecond: 100 * time.Millisecond, time.Hour: longestRest,
	} {
		if got := restAfter(took); got != want {
			t.Errorf("after %v a rest of %v, not %v", took, got, want)
		}
	}
}

func TestPatience(t *testing.T) {
	for _, c := range []struct {
		dead, documents int64
		want            time.Duration
	}{
		{1_000_000, 0, quietFor},
		{1000, 8000, quietFor},
		{1000, 80_000, 10 * quietFor},
		{1, 10_000_000_000, longestQuiet},
		{0, 1000, longestQuiet},
		{-1, 1000, longestQuiet},
	} {
		if got := patience(c.dead, c.documents); got != c.want {
			t.Errorf("%d dead beside %d: %v, not %v", c.dead, c.documents, got, c.want)
		}
	}
}

func TestWhenToVacuum(t *testing.T) {
	now := time.Unix(1_700_000_000, 0)
	swept := func(ago time.Duration) maintenanceTask {
		return maintenanceTask{vacuum: true, lastSwept: now.Add(-ago)}
	}
	begun := func(interrupted bool) maintenanceTask {
		c := swept(0)
		c.vacuuming, c.interrupted = true, interrupted
		return c
	}
	for _, c := range []struct {
		name            string
		task            maintenanceTask
		dead, documents int64
		want            bool
	}{
		{"half is dead", swept(0), 5000, 10_000, true},
		{"less is", swept(0), 4999, 10_000, false},
		{"few are", swept(0), 999, 0, false},
		{"quiet", swept(quietFor), 2000, 10_000, true},
		{"not quiet yet", swept(quietFor - 1), 2000, 10_000, false},
		{"not quiet enough for so few", swept(quietFor), 100, 10_000, false},
		{"from before the start", maintenanceTask{vacuum: true}, 1, 1_000_000, true},
		{"the clock was turned back", swept(-time.Hour), 1, 1_000_000, true},
		{"goes on", begun(false), 1, 10_000, true},
		{"goes on beside sweeps", begun(true), 1251, 10_000, true},
		{"enough beside sweeps", begun(true), 1250, 10_000, false},
	} {
		if got := c.task.vacuumsNow(c.dead, c.documents, now); got != c.want {
			t.Errorf("%s: %v", c.name, got)
		}
	}
}
