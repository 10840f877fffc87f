package host

import (
	"testing"
	"time"
)

func TestIdleTime(t *testing.T) {
	for _, c := range []struct {
		text string
		want time.Duration
	}{
		{"cpu  100 2 30 400 50 0 6 7 0 0\ncpu0 1 2 3 4 5 6 7\n", 4500 * time.Millisecond},
		{"cpu 1 2 3 4", -1},
		{"cpu 1 2 3 x 5", -1},
		{"intr 1 2 3 4 5", -1},
		{"", -1},
	} {
		if got := idleTime(c.text); got != c.want {
			t.Errorf("%q: %v, not %v", c.text, got, c.want)
		}
	}
}

func TestProcessorsAreUsed(t *testing.T) {
	before := LookAtProcessors()
	for range 1000 { // some work, however little
		read("/proc/stat")
	}
	after := LookAtProcessors()
	if after.Count < 1 || after.Used <= before.Used || after.Idle < before.Idle || before.Idle <= 0 {
		t.Errorf("%+v, then %+v", before, after)
	}
}

func BenchmarkLookAtProcessors(b *testing.B) {
	for b.Loop() {
		LookAtProcessors()
	}
}
