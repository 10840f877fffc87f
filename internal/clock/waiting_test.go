package clock

import (
	"testing"
	"time"
)

func TestWaiting(t *testing.T) {
	f := NewFake(time.Unix(0, 0))
	late, early := f.NewTimer(2*time.Second), f.NewTimer(time.Second)
	if n := f.Waiting(); n != 2 {
		t.Errorf("%d timers wait, not 2", n)
	}
	f.Advance(time.Second)
	<-early.C()
	if n := f.Waiting(); n != 1 {
		t.Errorf("%d timers wait, not 1", n)
	}
	late.Stop()
	if n := f.Waiting(); n != 0 {
		t.Errorf("%d timers wait, not 0", n)
	}
}
