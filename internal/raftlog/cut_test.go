package raftlog

import (
	"testing"

	"go.etcd.io/raft/v3/tracker"
)

// TestCutBefore: the log is kept for members that are behind, for those that are there also where it is longer than it should be, but not without
// end.
func TestCutBefore(t *testing.T) {
	const durable, last, spare = 100_000, 100_010, 1 << 10
	has := func(match uint64, active bool) tracker.Progress {
		return tracker.Progress{Match: match, RecentActive: active}
	}
	copies := tracker.Progress{State: tracker.StateSnapshot, PendingSnapshot: 60_000, RecentActive: true}
	for what, c := range map[string]struct {
		others []tracker.Progress
		most   uint64
		hard   bool
		want   uint64
	}{
		"all have all":                      {[]tracker.Progress{has(last, true)}, 1 << 20, false, durable + 1 - spare},
		"one is behind":                     {[]tracker.Progress{has(last, true), has(50_000, true)}, 1 << 20, false, 50_001 - spare},
		"one is behind, the log is long":    {[]tracker.Progress{has(last, true), has(50_000, true)}, 2000, false, 50_001},
		"one is gone, the log is long":      {[]tracker.Progress{has(last, true), has(50_000, false)}, 2000, false, last - 2000},
		"one gets a copy":                   {[]tracker.Progress{has(last, true), copies}, 1 << 20, false, 60_001 - spare},
		"one gets a copy, the log is long":  {[]tracker.Progress{has(last, true), copies}, 2000, false, 60_001},
		"one gets a copy, there is no room": {[]tracker.Progress{has(last, true), copies}, 2000, true, last - 2000},
		"it follows":                        {nil, 1 << 20, false, 0},
		"it follows, the log is long":       {nil, 2000, false, last - 2000},
	} {
		progress := map[uint64]tracker.Progress{}
		for i, p := range c.others {
			progress[uint64(i)] = p
		}
		if got := cutBefore(progress, durable, last, spare, c.most, c.hard); got != c.want {
			t.Errorf("%s: from %d on, want %d", what, got, c.want)
		}
	}
}
