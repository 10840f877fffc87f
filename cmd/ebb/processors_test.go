package main

import "testing"

func TestSchedulerProcessors(t *testing.T) {
	for _, c := range []struct{ given, machine, want int }{
		{1, 1, 2}, {2, 2, 3}, {64, 64, 65},
		{2, 16, 0}, // a quota
		{3, 2, 0},  // somebody has said so already
	} {
		if got := schedulerProcessors(c.given, c.machine); got != c.want {
			t.Errorf("%d given of %d: %d, want %d", c.given, c.machine, got, c.want)
		}
	}
}
