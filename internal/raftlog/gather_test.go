package raftlog

import (
	"testing"
	"time"

	"github.com/ebbdb/ebb/internal/clock"
)

// TestGathering has a few commit again and again: all who do come to be in each append, who does not come again is waited for for a moment, and who
// commits alone is not kept waiting.
func TestGathering(t *testing.T) {
	c := clock.NewFake(time.UnixMilli(0))
	g := gathering{clock: c}
	end := uint64(0)
	// round appends so many commits, which takes a millisecond; others come meanwhile.
	round := func(commits, others int) {
		t.Helper()
		g.begin(commits)
		end += uint64(commits)
		if g.isOver(end, end-1) {
			t.Fatal("the append is not committed")
		}
		c.Advance(time.Millisecond)
		if !g.isOver(end+1, end) {
			t.Fatal("the append is committed")
		}
		g.end(others)
		if g.isOver(end, end) {
			t.Fatal("that was told")
		}
	}
	expect := func(waiting, enough int) {
		t.Helper()
		if n := g.enough(waiting); n != enough {
			t.Errorf("%d are enough where %d wait, and not %d", n, waiting, enough)
		}
	}
	expect(0, 1)
	for range 3 { // alone
		expect(1, 1)
		round(1, 0)
	}
	if c.Waiting() != 0 {
		t.Error("who commits alone waits")
	}
	round(1, 3)
	expect(3, 4) // for the one that was let go
	expect(4, 1)
	round(4, 0)
	expect(1, 4)
	expect(3, 4)
	if g.tooLate() == nil || c.Waiting() != 1 {
		t.Fatal("others are waited for without end")
	}
	c.Advance(time.Millisecond)
	<-g.tooLate()
	g.expire()
	expect(3, 1)
	if g.tooLate() != nil {
		t.Error("nobody is waited for any more")
	}
	round(3, 0)
	expect(3, 1)

	g.begin(3) // slow
	c.Advance(time.Minute)
	g.isOver(end+3, end+3)
	g.end(1)
	expect(1, 4)
	c.Advance(maxGather)
	select {
	case <-g.tooLate():
	default:
		t.Error("others are waited for for too long")
	}
}
