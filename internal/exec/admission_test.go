package exec

import (
	"slices"
	"testing"
	"time"

	"github.com/ebbdb/ebb/internal/clock"
	"github.com/ebbdb/ebb/internal/host"
)

// full is an admission whose leases are all held for a long time.
func full() (a *admission, held []*lease) {
	a = &admission{lasts: time.Hour}
	for range host.ProcessorCount() {
		l := &lease{}
		a.renew(l)
		held = append(held, l)
	}
	return a, held
}

// wait has l wait for its lease until it stands in line, in place n.
func wait(a *admission, l *lease, n int) (done chan struct{}) {
	done = make(chan struct{})
	go func() {
		a.renew(l)
		close(done)
	}()
	for {
		a.mu.Lock()
		there := len(a.line) == n
		a.mu.Unlock()
		if there {
			return done
		}
		time.Sleep(time.Millisecond)
	}
}

func (a *admission) holds(l *lease) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return l.held && slices.Contains(a.leases, l)
}

func TestAdmissionIsInOrder(t *testing.T) {
	a, held := full()
	var first, second lease
	one := wait(a, &first, 1)
	two := wait(a, &second, 2)
	a.end(held[0])
	<-one
	select {
	case <-two:
		t.Error("the second was admitted with the first")
	default:
	}
	if !a.holds(&first) || a.holds(&second) || a.holds(held[0]) {
		t.Error("others hold leases than should")
	}
	a.end(&first)
	<-two
	a.mu.Lock()
	defer a.mu.Unlock()
	if n := len(a.leases); n != host.ProcessorCount() || len(a.line) != 0 {
		t.Errorf("%d leases, %d in line", n, len(a.line))
	}
}

// Who does not come back loses his lease.
func TestLeasesExpire(t *testing.T) {
	a, held := full()
	a.mu.Lock()
	held[0].expires = clock.Wall().Now()
	a.mu.Unlock()
	var l lease
	a.renew(&l)
	if !a.holds(&l) || a.holds(held[0]) {
		t.Error("others hold leases than should")
	}
}

// A tenure ends when somebody waits, and not before.
func TestTenure(t *testing.T) {
	a, held := full()
	old := held[0]
	given := old.given
	a.renew(old)
	if !a.holds(old) || old.given != given {
		t.Error("it was given anew though nobody waits")
	}
	var l lease
	one := wait(a, &l, 1)
	a.mu.Lock()
	old.given = old.given.Add(-tenure)
	a.mu.Unlock()
	again := make(chan struct{})
	go func() {
		a.renew(old)
		close(again)
	}()
	<-one
	a.end(&l)
	<-again
	if !a.holds(old) || a.holds(&l) {
		t.Error("others hold leases than should")
	}
}

// Nobody waits for ever.
func TestAdmissionGivesUp(t *testing.T) {
	a, _ := full()
	var l lease
	a.renew(&l)
	a.mu.Lock()
	defer a.mu.Unlock()
	if l.held || len(a.line) != 0 {
		t.Errorf("held %v, %d in line", l.held, len(a.line))
	}
}
