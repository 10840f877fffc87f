package replset

import (
	"context"
	"errors"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ebbdb/ebb/internal/clock"
)

// kept is a Storage that can fail.
type kept struct {
	configs []*Config
	terms   []int64
	err     error
}

func (k *kept) SaveConfig(_ context.Context, c *Config) error {
	if k.err == nil {
		k.configs = append(k.configs, c)
	}
	return k.err
}

func (k *kept) SaveElection(_ context.Context, term int64) error {
	if k.err == nil {
		k.terms = append(k.terms, term)
	}
	return k.err
}

func anyView(*View) error { return nil }

// TestNode: a member of a set of one is elected as soon as it has a configuration, and again when it has stepped down for long
// enough; each change is a new View that those who wait for one hear of.
func TestNode(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, stop := context.WithCancel(t.Context())
		fake, storage := clock.NewFake(time.UnixMilli(1e12)), &kept{}
		n := NewNode("rs", fake, storage, NewTopology())
		var failures []error
		done := make(chan struct{})
		go func() { defer close(done); n.Run(ctx, func(err error) { failures = append(failures, err) }) }()
		is := func(s State, term, topology int64) {
			t.Helper()
			synctest.Wait()
			if v := n.View(); v.State != s || v.Term != term || v.Topology != topology {
				t.Fatalf("%s in term %d, topology %d; want %s, %d, %d", v.State, v.Term, v.Topology, s, term, topology)
			}
		}
		is(Startup, -1, 0)
		before := n.View()
		c := Default("rs", "localhost:1", [12]byte{1})
		if err := n.Initiate(ctx, c, 0, anyView); err != nil {
			t.Fatal(err)
		}
		<-before.Changed
		is(Primary, 1, 2)
		if v := n.View(); v.ElectedAt != 1e12 || v.Host() != "localhost:1" || len(storage.configs) != 1 {
			t.Fatal(v, storage)
		}
		refused := errors.New("refused")
		if err := n.StepDown(ctx, time.Second, func(*View) error { return refused }); err != refused {
			t.Fatal(err)
		}
		if err := n.StepDown(ctx, 3*time.Second, anyView); err != nil {
			t.Fatal(err)
		}
		is(Secondary, 1, 3)
		fake.Advance(2 * time.Second)
		is(Secondary, 1, 3)
		if err := n.Freeze(ctx, 5*time.Second, anyView); err != nil {
			t.Fatal(err)
		}
		fake.Advance(4 * time.Second)
		is(Secondary, 1, 4)
		storage.err = errors.New("disk")
		if err := n.Freeze(ctx, 0, anyView); err != nil {
			t.Fatal(err)
		}
		is(Secondary, 1, 5)
		if len(failures) != 1 {
			t.Fatal(failures)
		}
		storage.err = nil
		fake.Advance(electionRetry)
		is(Primary, 2, 6)
		stop()
		<-done

		again := NewNode("rs", fake, storage, NewTopology())
		again.Restore(storage.configs[0], 0, storage.terms[len(storage.terms)-1])
		if err := again.Elect(t.Context()); err != nil || again.View().Term != 3 {
			t.Fatal(err, again.View())
		}
		changes := 0
		other := NewNode("other", fake, storage, NewTopology())
		other.OnChange = func() { changes++ }
		other.Restore(storage.configs[0], -1, 3)
		if err := other.Elect(t.Context()); err != nil || other.View().State != Removed || other.View().State.String() != "REMOVED" || changes != 1 {
			t.Fatal(err, other.View(), changes)
		}
		alone := *storage.configs[0]
		alone.Members = alone.Members[:1]
		several := alone
		several.Members = append(slices.Clone(alone.Members), Member{ID: 7, Host: "elsewhere:27017", Votes: 1})
		without := NewNode("rs", fake, storage, NewTopology())
		without.Restore(&several, 0, 3)
		if err := without.Elect(t.Context()); without.View().State != Recovering || without.View().State.String() != "RECOVERING" {
			t.Fatal(err, without.View())
		}
		if err := without.Reconfigure(t.Context(), func(*View) (*Config, int, error) { return &several, 0, nil }); err != nil || without.View().State != Recovering {
			t.Fatal(err, without.View())
		}
		if err := without.Reconfigure(t.Context(), func(*View) (*Config, int, error) { return &alone, 0, nil }); err != nil || without.View().State != Secondary {
			t.Fatal(err, without.View())
		}
		if id := ElectionID(3); id != [12]byte{0x7f, 0xff, 0xff, 0xff, 0, 0, 0, 0, 0, 0, 0, 3} {
			t.Fatal(id)
		}
	})
}

// TestLeadWithoutConfiguration: whom others elect who does not know the set does not lead it.
func TestLeadWithoutConfiguration(t *testing.T) {
	storage := &kept{}
	n := NewNode("rs", clock.NewFake(time.UnixMilli(1e12)), storage, NewTopology())
	if err := n.Lead(t.Context(), 3); err == nil || n.View().State != Startup || len(storage.terms) != 0 {
		t.Fatal(err, n.View(), storage)
	}
}

// TestReconfigureRenames: a primary that gets another address is the primary at that.
func TestReconfigureRenames(t *testing.T) {
	n := NewNode("rs", clock.NewFake(time.UnixMilli(1e12)), &kept{}, NewTopology())
	c := Default("rs", "localhost:1", [12]byte{1})
	if err := errors.Join(n.Initiate(t.Context(), c, 0, anyView), n.Elect(t.Context())); err != nil {
		t.Fatal(err)
	}
	if err := n.Reconfigure(t.Context(), func(v *View) (*Config, int, error) { return Default("rs", "127.0.0.1:1", [12]byte{1}), 0, nil }); err != nil {
		t.Fatal(err)
	}
	if v := n.View(); v.State != Primary || v.Primary != "127.0.0.1:1" {
		t.Fatal(v)
	}
}

// TestFreezeLengthens: a member that has stepped down for a while does not stand for election sooner because it is frozen for less, and at once where it is
// unfrozen.
func TestFreezeLengthens(t *testing.T) {
	fake := clock.NewFake(time.UnixMilli(1e12))
	n := NewNode("rs", fake, &kept{}, NewTopology())
	ctx := t.Context()
	if err := errors.Join(n.Initiate(ctx, Default("rs", "localhost:1", [12]byte{1}), 0, anyView), n.Elect(ctx), n.StepDown(ctx, time.Minute, anyView)); err != nil {
		t.Fatal(err)
	}
	until := n.View().Until
	for _, c := range []struct{ freeze, until time.Duration }{{time.Second, until}, {2 * time.Minute, until + time.Minute}, {0, 0}, {time.Second, clock.Monotonic(fake) + time.Second}} {
		if err := n.Freeze(ctx, c.freeze, anyView); err != nil {
			t.Fatal(err)
		}
		if got := n.View().Until; got != c.until {
			t.Errorf("frozen for %v it stands for election at %v, not %v", c.freeze, got, c.until)
		}
	}
}
