package member

import (
	"testing"
	"time"
)

// TestTakeover: a member of more priority that is never elected is handed over to less and less often, and one that was elected is again as before.
func TestTakeover(t *testing.T) {
	var o takeover
	now := time.Second
	if !o.isDue(now, 1) {
		t.Fatal("the first is not due")
	}
	for _, wait := range []time.Duration{10 * time.Second, 20 * time.Second, 40 * time.Second, 80 * time.Second, 160 * time.Second, 5 * time.Minute, 5 * time.Minute} {
		o.tried(now, false)
		if o.isDue(now+wait-1, 1) || !o.isDue(now+wait, 1) {
			t.Errorf("after one that failed the next is due at %v and not after %v", o.next-now, wait)
		}
		now += wait
	}
	o.tried(now, true)
	if o.isDue(now+takeoverEvery-1, 1) || !o.isDue(now+takeoverEvery, 1) {
		t.Errorf("after one that did not fail the next is due after %v", o.next-now)
	}
	if !o.isDue(now, 2) {
		t.Error("under another configuration the first is not due")
	}
}
