package sweeper_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/ebbdb/ebb/internal/catalog"
	"github.com/ebbdb/ebb/internal/storage/layout"
	"github.com/ebbdb/ebb/internal/storage/sweeper"
	"github.com/ebbdb/ebb/internal/ttl/policy"
)

// TestSweep: all that is due goes at once, and nothing else; what is few is left to others.
func TestSweep(t *testing.T) {
	w := newWorld(t)
	w.index(byDate, plain)
	w.insert(0, 4, 0)
	w.insert(100, 7, time.Hour)
	w.clock.Advance(time.Minute - time.Millisecond)
	w.insert(200, 1, -time.Minute+time.Millisecond)
	if done, ok := w.sweep(); ok {
		t.Errorf("before anything is due: %+v", done)
	}
	w.clock.Advance(time.Millisecond)
	few := func(n int) bool {
		c := w.collection()
		return w.Few(c.ID, c.ExpiryOrder().Rule, w.store.Now(), n)
	}
	if !few(4) || few(5) {
		t.Error("four are few, and five are not")
	}
	done, ok := w.sweep()
	if want := (sweeper.Swept{Documents: 5, Bytes: done.Bytes, Keys: done.Keys}); !ok || done != want || done.Bytes == 0 || done.Keys == 0 {
		t.Errorf("%+v, %v, want %+v", done, ok, want)
	}
	w.wantStored(7, 10) // in the indexes on _id and a
	if done, ok := w.sweep(); ok {
		t.Errorf("again: %+v", done)
	}
}

// TestSweepLeavesFew: fewer than are worth a range deletion are left to be deleted one by one.
func TestSweepLeavesFew(t *testing.T) {
	w := newWorld(t)
	w.index(byDate)
	w.insert(0, 4, 0)
	w.clock.Advance(time.Minute)
	if done, ok := w.sweep(); ok || done != (sweeper.Swept{}) {
		t.Errorf("%+v", done)
	}
	w.wantStored(4, 0)
}

// TestSweepTakesTrail: a few are deleted as a range where many have gone one by one before them, so that nobody has to walk over what those have left.
func TestSweepTakesTrail(t *testing.T) {
	w := newWorld(t)
	w.Limits.Trail = 20
	w.index(byDate, plain)
	c := w.collection()
	histogram, rule := c.ExpiryOrder().Histogram, c.ExpiryOrder().Rule
	lost := 0
	for round := range 12 {
		w.insert(10*round, 2, 0)
		w.insert(10*round+5, 1, time.Hour)
		w.clock.Advance(time.Minute)
		few := w.Few(c.ID, rule, w.store.Now(), 2)
		done, ok := w.sweep()
		if ok != (lost >= 20) || few == ok {
			t.Fatalf("%d have gone one by one, few: %v, swept: %v, %+v", lost, few, ok, done)
		}
		if ok {
			lost = 0
			if floor := histogram.Floor(layout.OnDefault); floor <= w.store.Now()-time.Minute.Milliseconds() {
				t.Errorf("the floor is %d", floor)
			}
		} else {
			deleted, err := w.DeleteDue(ctx, c, rule, w.store.Now(), sweeper.BesideWriters)
			w.must(err)
			lost += int(deleted)
		}
		if trail := histogram.Trail(layout.OnDefault); trail != int64(lost) {
			t.Errorf("the trail is %d, want %d", trail, lost)
		}
	}
	w.wantStored(12, 4) // in the indexes on _id and a
}

// TestSweepRefuses: what does not lie as one stretch, and what is paused, is not swept, and the reply says nothing else.
func TestSweepRefuses(t *testing.T) {
	for name, prepare := range map[string]func(w *world) *policy.Rule{
		"another TTL than the one that orders": func(w *world) *policy.Rule {
			view, err := w.store.View(ctx)
			w.must(err)
			defer view.Close()
			for _, rule := range w.collection().Read(view).Rules().All() {
				if rule.Index != nil && rule.Index.Name == "e" {
					return &rule
				}
			}
			return nil
		},
		"paused": func(w *world) *policy.Rule {
			w.must(w.ddl.Modify(ctx, tested, func(c *catalog.Collection) (*catalog.Collection, error) {
				o := c.Options
				o.TTLPaused = true
				return c.WithOptions(o), nil
			}))
			return w.collection().ExpiryOrder().Rule
		},
		"an engine without range deletes": func(w *world) *policy.Rule {
			w.reopen(limited{w.engine, w.T})
			return w.collection().ExpiryOrder().Rule
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.index(byDate, byOther)
			w.insert(0, 20, 0)
			rule := prepare(w)
			w.clock.Advance(time.Minute)
			c := w.collection()
			if done, ok, err := w.Sweep(ctx, c.ID, rule, w.store.Now()); ok || err != nil || done != (sweeper.Swept{}) {
				t.Errorf("%+v, %v, %v", done, ok, err)
			}
			w.wantStored(20, 0)
		})
	}
}

// TestSweepGivesWay: a sweep waits for writers a little, and then says that another may do better. One whose caller gives up says why.
func TestSweepGivesWay(t *testing.T) {
	w := newWorld(t)
	w.index(byDate)
	w.insert(0, 20, 0)
	w.clock.Advance(time.Minute)
	c := w.collection()
	unlock, err := c.Lock(ctx)
	w.must(err)
	now, ended := w.store.Now(), make(chan struct{})
	var done sweeper.Swept
	var ok bool
	go func() {
		defer close(ended)
		done, ok, err = w.Sweep(ctx, c.ID, c.ExpiryOrder().Rule, now)
	}()
	for waits := true; waits; {
		select {
		case <-ended:
			waits = false
		default:
			w.clock.Advance(10 * time.Millisecond) // its timer may not be set yet at the first turn
		}
	}
	if ok || err != nil || done != (sweeper.Swept{Busy: true}) {
		t.Errorf("%+v, %v, %v", done, ok, err)
	}
	over, giveUp := context.WithCancelCause(ctx)
	stop := errors.New("stop")
	giveUp(stop)
	if done, ok, err := w.Sweep(over, c.ID, c.ExpiryOrder().Rule, now); ok || !errors.Is(err, stop) {
		t.Errorf("%+v, %v, %v", done, ok, err)
	}
	unlock()
	w.wantStored(20, 0)
	if done, ok := w.sweep(); !ok || done.Documents != 20 {
		t.Errorf("%+v, %v", done, ok)
	}
}

// TestCountOrder: after a start a large collection is swept when it was counted, in slices, beside writers.
func TestCountOrder(t *testing.T) {
	w := newWorld(t)
	w.index(byDate)
	w.insert(0, 20, 0)
	w.clock.Advance(time.Minute)
	w.reopen(w.engine)
	w.Limits.CountedAtOnce = 19
	if done, ok := w.sweep(); ok || done != (sweeper.Swept{Uncounted: true}) {
		t.Errorf("%+v, %v", done, ok)
	}
	c := w.collection()
	if w.IsCounting(c.ID) {
		t.Error("nobody has begun to count")
	}
	slices := 0
	for more := true; more; slices++ {
		var err error
		more, err = w.CountOrder(ctx, c.ID, 6)
		w.must(err)
		if more != w.IsCounting(c.ID) {
			t.Errorf("more %v, counting %v", more, w.IsCounting(c.ID))
		}
		w.insert(100+slices, 1, -time.Hour) // what is written meanwhile counts
	}
	if slices < 3 {
		t.Errorf("20 records were counted in %d slices of 6", slices)
	}
	if done, ok := w.sweep(); !ok || done.Documents != int64(20+slices) {
		t.Errorf("%+v, %v, want %d", done, ok, 20+slices)
	}
	if more, err := w.CountOrder(ctx, c.ID, 6); more || err != nil {
		t.Errorf("what is known is counted: %v, %v", more, err)
	}
}

// TestSweepBesideBuild: nothing is swept while an index is built, whose entries nobody would know to be dead.
func TestSweepBesideBuild(t *testing.T) {
	notOnTiKV(t, "it takes over no tables, as this build loads")
	const n = 1200 // an index on fewer is built at once
	w := newWorld(t)
	engine := &watched{Engine: w.engine}
	w.reopen(engine)
	w.index(byDate)
	w.insert(0, n, 0)
	w.clock.Advance(time.Minute)
	asked := false
	engine.atLoad = func() {
		asked = true
		if done, ok := w.sweep(); ok || done != (sweeper.Swept{}) {
			t.Errorf("%+v, %v", done, ok)
		}
	}
	w.index(plain)
	if !asked {
		t.Fatal("the index was built at once")
	}
	w.wantStored(n, 0)
	if done, ok := w.sweep(); !ok || done.Documents != n {
		t.Errorf("%+v, %v", done, ok)
	}
	w.wantStored(0, 0) // where nothing is left, no entry is
}
