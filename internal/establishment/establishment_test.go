package establishment

import (
	"net"
	"runtime"
	"testing"
	"time"

	"github.com/ebbdb/ebb/internal/bson"
	"github.com/ebbdb/ebb/internal/clock"
	"github.com/ebbdb/ebb/internal/parameter"
)

// from is a connection from an address.
type from string

func (f from) LocalAddr() net.Addr  { return &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1)} }
func (f from) RemoteAddr() net.Addr { return &net.TCPAddr{IP: net.ParseIP(string(f)), Port: 5} }

type harness struct {
	*testing.T
	*Limiter
	params   *parameter.Registry
	turned   *clock.Fake
	stopping chan struct{}
}

func newHarness(t *testing.T) *harness {
	h := &harness{T: t, params: parameter.NewRegistry(nil), turned: clock.NewFake(time.Unix(1000, 0)), stopping: make(chan struct{})}
	h.Limiter = New(h.turned)
	h.AddParameters(h.params)
	return h
}

func (h *harness) set(name, value string) {
	h.Helper()
	if _, err := h.params.Set(prefix+name, bson.MustParse(value), parameter.Runtime); err != nil {
		h.Fatal(err)
	}
}

// limiting is a harness whose limiter is enabled.
func limiting(t *testing.T, perSecond, burst string) *harness {
	h := newHarness(t)
	h.set("RatePerSec", perSecond)
	h.set("BurstCapacitySecs", burst)
	h.set("RateLimiterEnabled", "true")
	return h
}

func (h *harness) admits(address string, want bool) {
	h.Helper()
	if got := h.Admit(from(address), h.stopping); got != want {
		h.Errorf("%s: admitted %v", address, got)
	}
}

// queues has one more wait, and returns what comes of it.
func (h *harness) queues() <-chan bool {
	out := make(chan bool, 1)
	waiting := h.turned.Waiting()
	go func() { out <- h.Admit(from("10.1.1.1"), h.stopping) }()
	for h.turned.Waiting() == waiting {
		runtime.Gosched()
	}
	return out
}

func TestAllComeInUntilItIsEnabled(t *testing.T) {
	var none *Limiter
	if !none.Admit(from("10.1.1.1"), nil) || !New(clock.Wall()).Admit(from("10.1.1.1"), nil) || none.Stats() != (Stats{}) {
		t.Error("no limiter, or one without parameters, limits")
	}
	h := limiting(t, "1", "1")
	h.set("RateLimiterEnabled", "false")
	for range 5 {
		h.admits("10.1.1.1", true)
	}
	if s := h.Stats(); s.Attempted != 0 || s.Tokens != 1 {
		t.Errorf("%+v", s)
	}
}

func TestRateBurstAndQueue(t *testing.T) {
	h := limiting(t, "2", "1.5")
	h.set("MaxQueueDepth", "2")
	h.set("RateLimiterBypass", `{ranges: ["192.168.0.0/16"]}`)
	for range 3 {
		h.admits("10.1.1.1", true)
	}
	first, second := h.queues(), h.queues()
	h.admits("10.1.1.1", false)
	h.admits("192.168.3.4", true)
	if s := h.Stats(); s != (Stats{Queued: 2, Attempted: 6, Admitted: 3, Rejected: 1, Exempted: 1, Waits: 2}) {
		t.Errorf("%+v", s)
	}
	h.turned.Advance(500 * time.Millisecond)
	if !<-first {
		t.Error("the first one did not come in")
	}
	third := h.queues() // behind the second
	h.turned.Advance(500 * time.Millisecond)
	if !<-second {
		t.Error("the second one did not come in")
	}
	close(h.stopping)
	if <-third {
		t.Error("one came in while the server stopped")
	}
	for h.Stats().Queued > 0 {
		runtime.Gosched()
	}
	if s := h.Stats(); s != (Stats{Attempted: 7, Admitted: 5, Rejected: 1, Exempted: 1, Interrupted: 1, Waits: 3, Waited: 2, WaitedMicros: 1500000}) {
		t.Errorf("%+v", s)
	}
}

// TestBurstBelowOne: there is never a whole token.
func TestBurstBelowOne(t *testing.T) {
	h := limiting(t, "1", "0.001")
	h.admits("10.1.1.1", false)
	h.turned.Advance(time.Hour)
	h.admits("10.1.1.1", false)
	h.set("BurstCapacitySecs", "2")
	h.admits("10.1.1.1", true)
	h.admits("10.1.1.1", true)
	h.admits("10.1.1.1", false)
}
