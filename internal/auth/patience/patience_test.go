package patience

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"testing"
	"time"
)

func TestPatience(t *testing.T) {
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	here, there := netip.MustParseAddr("10.0.0.1"), netip.MustParseAddr("10.0.0.2")
	r := &Register{}
	wait := func(what string, a netip.Addr, user string, want time.Duration) {
		t.Helper()
		if got := r.Wait(From(a, user), now); got != want {
			t.Errorf("%s: waits %v, not %v", what, got, want)
		}
	}
	r.Succeeded(From(here, "good"), now)
	for range Free {
		r.Failed(From(there, "bad"), now)
	}
	wait("after free failures", there, "bad", 0)
	r.Failed(From(there, "bad"), now)
	wait("the user where it failed", there, "bad", Least)
	wait("the user elsewhere", here, "bad", Least)
	wait("another user there", there, "other", Least)
	wait("another user elsewhere", here, "other", 0)
	for range 100 {
		r.Failed(From(there, "good"), now)
	}
	wait("many failures", there, "good", Most)
	wait("who has logged in, where it has", here, "good", 0)
	wait("others beside it", here, "other", 0)
	now = now.Add(Forgiven * (MaxFailures - Free - 1))
	wait("nearly forgiven", there, "good", Least)
	now = now.Add(Forgiven)
	wait("forgiven", there, "good", 0)
	for range Free + 1 {
		r.Failed(From(here, "good"), now)
	}
	wait("who fails where it had logged in", here, "good", Most) // on top of what is not forgiven yet
	r.Succeeded(From(here, "good"), now)
	wait("and then logs in", here, "good", 0)
	now = now.Add(Trusted)
	for range Free + 1 {
		r.Failed(From(there, "good"), now)
	}
	wait("trust ends", here, "good", Least)
}

func TestNetworks(t *testing.T) {
	same := func(a, b string) bool { return From(netip.MustParseAddr(a), "u") == From(netip.MustParseAddr(b), "u") }
	for _, c := range []struct {
		a, b string
		want bool
	}{
		{"2001:db8::1", "2001:db8::2", true}, {"2001:db8::1", "2001:db8:0:1::1", false}, {"10.0.0.1", "::ffff:10.0.0.1", true},
		{"10.0.0.1", "10.0.0.2", false}, {"fe80::1%a", "fe80::1%b", true},
	} {
		if same(c.a, c.b) != c.want {
			t.Errorf("%s and %s: %v", c.a, c.b, !c.want)
		}
	}
}

func TestRoom(t *testing.T) {
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	r := &Register{}
	for i := range 3 * MaxKept {
		r.Failed(From(netip.AddrFrom4([4]byte{10, byte(i >> 16), byte(i >> 8), byte(i)}), fmt.Sprint(i)), now)
		if len(r.mu.kept) > MaxKept {
			t.Fatalf("%d are kept", len(r.mu.kept))
		}
	}
}

// TestPlaces: as many logins from an address wait as may, whoever they are for; those from elsewhere have places of their own.
func TestPlaces(t *testing.T) {
	here, there := netip.MustParseAddr("10.0.0.1"), netip.MustParseAddr("10.0.0.2")
	r := &Register{}
	enough := errors.New("enough")
	ended, cancel := context.WithCancelCause(t.Context())
	var leave []func()
	enter := func(a netip.Addr, user string) {
		t.Helper()
		out, err := r.Enter(t.Context(), From(a, user))
		if err != nil {
			t.Fatal(err)
		}
		leave = append(leave, out)
	}
	for i := range MaxWaiting {
		enter(here, fmt.Sprint(i))
	}
	cancel(enough)
	if _, err := r.Enter(ended, From(here, "one more")); err != enough {
		t.Error("one more waits", err)
	}
	enter(there, "0")
	next := make(chan func())
	go func() {
		out, _ := r.Enter(t.Context(), From(here, "next"))
		next <- out
	}()
	leave[0]()
	leave[0] = <-next
	for _, out := range leave {
		out()
	}
	if n := len(r.mu.waiting); n != 0 {
		t.Errorf("%d addresses are kept where nobody waits", n)
	}
}
