package member

import (
	"testing"
	"time"
)

// TestTwins: of two processes that speak in one member's name one is heard, and which.
func TestTwins(t *testing.T) {
	const member = 7
	twins := newTwins()
	hear := func(process int64, home bool, at time.Duration, refused, first bool) {
		t.Helper()
		if r, f := twins.hear(member, process, home, true, at); r != refused || f != first {
			t.Errorf("process %d: %v, %v", process, r, f)
		}
	}
	hear(1, false, 0, false, false)
	hear(2, false, time.Second, true, true)
	hear(2, false, time.Second, true, false)
	hear(0, false, time.Second, false, false) // which does not say who it is
	hear(1, false, 2*time.Second, false, false)
	hear(2, false, 2*time.Second+voiceTime-1, true, false)
	hear(2, false, 2*time.Second+voiceTime, false, false) // the first is silent
	hear(1, true, 6*time.Second, false, false)            // it is where the member should be
	hear(2, false, 6*time.Second, true, false)
	hear(3, true, 6*time.Second, true, true) // so is a copy of the whole machine
	twins.leave(member, 2)
	hear(3, true, 6*time.Second, true, false)
	twins.leave(member, 1) // it has ended, and is started again
	hear(4, true, 6*time.Second, false, false)
	twins.leave(member, 4)
	if refused, _ := twins.hear(member, 4, true, false, 6*time.Second); refused { // a question that was on its way when its links ended
		t.Error("a question is refused")
	}
	hear(5, true, 6*time.Second, false, false)
	if refused, _ := twins.hear(member, 4, true, false, 6*time.Second); !refused {
		t.Error("a question of who is not heard is answered")
	}
}
