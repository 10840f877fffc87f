package raftlog

import (
	"time"

	"github.com/ebbdb/ebb/internal/clock"
)

// gathering has commits that are ordered at about the same time go into one append, which costs as much for many as for one: a sync here and at each
// other member, messages there and back, and all that is woken for them.
//
// Those whom the last append has let go are about to come with their next commits. What has come meanwhile waits for them, where otherwise two halves
// would alternate and cost twice as much. It waits for as many as came lately in one append and while that was on its way, and no longer than that took;
// who commits alone is never kept waiting. It is what commits do that share a sync (pebblekv's groupCommit).
//
// It is of the loop.
type gathering struct {
	clock    clock.Clock
	expected int           // how many come at about the same time
	appended int           // how many the last append has; 0: it is committed
	last     uint64        // where it ends; 0: that is not known yet
	began    time.Duration // when it was made
	took     time.Duration // how long the last one took until it was committed
	late     clock.Timer   // runs while others are waited for; nil: nobody is
	isLate   bool          // it has ended
}

// maxGather is the longest that commits wait for others. It is for networks and disks that are slow.
const maxGather = 5 * time.Millisecond

// enough is how many commits there have to be before they are appended, where so many wait.
func (g *gathering) enough(waiting int) int {
	switch {
	case waiting == 0 || waiting >= g.expected || g.isLate:
		return 1
	case g.late == nil:
		g.late = g.clock.NewTimer(min(g.took, maxGather))
	}
	return g.expected
}

// tooLate is when nobody is waited for any more, of which expire is told.
func (g *gathering) tooLate() <-chan time.Time {
	if g.late == nil || g.isLate {
		return nil
	}
	return g.late.C()
}

func (g *gathering) expire() { g.isLate = true }

// begin takes note of an append of so many commits.
func (g *gathering) begin(commits int) {
	if g.late != nil {
		g.late.Stop()
	}
	g.late, g.isLate = nil, false
	g.appended, g.last, g.began = commits, 0, clock.Monotonic(g.clock)
}

// isOver says whether the last append has just been committed, which end is to be told of. The log ends where it says, and is committed up to there.
func (g *gathering) isOver(end, committed uint64) bool {
	if g.appended > 0 && g.last == 0 {
		g.last = end
	}
	return g.appended > 0 && committed >= g.last
}

// end takes note that the last append is committed, while so many commits wait.
func (g *gathering) end(waiting int) {
	g.expected, g.took, g.appended = g.appended+waiting, clock.Monotonic(g.clock)-g.began, 0
}
