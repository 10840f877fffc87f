package main

import (
	"context"
	"os"
	"runtime/debug"
	"runtime/metrics"
	"time"

	"github.com/ebbdb/ebb/internal/clock"
)

// Go's collector lets the heap grow by a part of all that is alive. Most of what is alive here are the store's blocks, memtables and cached
// rows: where they lie in Go's heap (a static binary), a gigabyte of them would have the collector keep two gigabytes of garbage. They
// hold no pointers, so that collecting costs nothing for them. The room for garbage is therefore reckoned by what the collector has to look
// at, and is never below minRoom, so that a small heap is not collected all the time.
const (
	// paceEvery is how often is looked whether a collection has found another heap.
	paceEvery = time.Second
	// minRoom is how far the heap may grow before the next collection, at least.
	minRoom = 48 << 20
	// maxPercent is Go's percentage at most, for the room in terms of what has to be looked at as well as in terms of what is alive.
	maxPercent = 200
	// minChange is by how many percent of itself the percentage has to change for the collector to be told.
	minChange = 10
)

// collection is what the last collection has found, in bytes: what is alive, and what of that had to be looked at.
type collection struct{ alive, scanned uint64 }

// percent is Go's percentage (GOGC) after such a collection.
func (c collection) percent() int {
	room := max(minRoom, c.scanned*maxPercent/100)
	return int(min(max(room*100/max(c.alive, 1), 1), maxPercent))
}

// lookAtCollection also says how many collections there were.
func lookAtCollection() (c collection, cycles uint64) {
	s := []metrics.Sample{{Name: "/gc/heap/live:bytes"}, {Name: "/gc/scan/total:bytes"}, {Name: "/gc/cycles/total:gc-cycles"}}
	metrics.Read(s)
	return collection{alive: s[0].Value.Uint64(), scanned: s[1].Value.Uint64()}, s[2].Value.Uint64()
}

// paceCollector tells Go's collector its percentage until ctx ends, unless the environment does (GOGC).
func paceCollector(ctx context.Context) {
	if os.Getenv("GOGC") != "" {
		return
	}
	debug.SetGCPercent(maxPercent)
	set, seen := maxPercent, uint64(0)
	for {
		timer := clock.Wall().NewTimer(paceEvery)
		select {
		case <-timer.C():
		case <-ctx.Done():
			timer.Stop()
			return
		}
		c, cycles := lookAtCollection()
		if cycles == seen {
			continue
		}
		seen = cycles
		if p := c.percent(); (p-set)*100 > set*minChange || (set-p)*100 > set*minChange {
			debug.SetGCPercent(p)
			set = p
		}
	}
}
