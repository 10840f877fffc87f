package main

import (
	"context"
	"runtime/debug"
	"runtime/metrics"
	"time"

	"github.com/ebbdb/ebb/internal/clock"
)

// Memory that a load has left behind is given back to the system when the load is over. Go's collector would do that late:
// its next round comes when the heap has grown to three times what was alive, which without load it does not, or after two
// minutes, and what it frees goes back slowly.
const (
	// giveBackEvery is how often is looked, and quietBytes up to which number of bytes allocated meanwhile there is no load.
	giveBackEvery = 5 * time.Second
	quietBytes    = 32 << 20
	// minGiveBack is how much there must be to give back at least, minChurn how much must have been allocated since the
	// last time: else what there is would not come free.
	minGiveBack = 64 << 20
	minChurn    = 64 << 20
)

// heapState is what the Go runtime says of its memory, in bytes: what it has of the system, what of that is alive, and what was allocated
// since the start.
type heapState struct{ held, alive, allocated uint64 }

func lookAtHeap() heapState {
	s := []metrics.Sample{{Name: "/memory/classes/total:bytes"}, {Name: "/memory/classes/heap/released:bytes"}, {Name: "/gc/heap/live:bytes"}, {Name: "/gc/heap/allocs:bytes"}}
	metrics.Read(s)
	return heapState{held: s[0].Value.Uint64() - s[1].Value.Uint64(), alive: s[2].Value.Uint64(), allocated: s[3].Value.Uint64()}
}

// isDue says whether memory should be given back now, before having been what was seen at the last look and given when it was
// given back last.
func (h heapState) isDue(before, given heapState) bool {
	quiet := h.allocated-before.allocated <= quietBytes
	return quiet && h.held > h.alive+minGiveBack && h.allocated-given.allocated >= minChurn
}

// giveBack runs until ctx ends.
func giveBack(ctx context.Context) {
	var before, given heapState
	for {
		timer := clock.Wall().NewTimer(giveBackEvery)
		select {
		case <-timer.C():
		case <-ctx.Done():
			timer.Stop()
			return
		}
		now := lookAtHeap()
		if now.isDue(before, given) {
			debug.FreeOSMemory()
			debug.FreeOSMemory() // pools keep what they have over one collection
			now = lookAtHeap()
			given = now
		}
		before = now
	}
}
