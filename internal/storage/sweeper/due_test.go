package sweeper_test

import (
	"testing"
	"time"

	"github.com/ebbdb/ebb/internal/storage/sweeper"
	"github.com/ebbdb/ebb/internal/ttl/policy"
)

// dueAndMore is a world with a collection of so many documents that are due, and three that are not, that was opened anew.
func dueAndMore(t *testing.T, due int) *world {
	w := newWorld(t)
	w.index(byDate)
	w.insert(0, due, 0)
	w.insert(due, 3, time.Hour)
	w.clock.Advance(time.Minute)
	w.reopen(w.engine)
	return w
}

// TestDeleteDue: for commands all of it goes, beside writers or under the caller's lock: at once where it is much, also what was not counted
// yet, which leaves dead entries, and else one by one.
func TestDeleteDue(t *testing.T) {
	for _, how := range []sweeper.Deletion{sweeper.BesideWriters, sweeper.UnderLock} {
		for due, dead := range map[int]int64{4: 0, 20: 20} {
			w := dueAndMore(t, due)
			c, now := w.collection(), w.store.Now()
			unlock := func() {}
			if how == sweeper.UnderLock {
				var err error
				unlock, err = c.Lock(ctx)
				w.must(err)
			}
			before, err := w.DeleteDue(ctx, c, c.ExpiryOrder().Rule, now-1, how)
			w.must(err)
			n, err := w.DeleteDue(ctx, c, c.ExpiryOrder().Rule, now, how)
			unlock()
			if before != 0 || n != int64(due) || err != nil {
				t.Errorf("under the lock %v: %d before it is due, then %d of %d, %v", how, before, n, due, err)
			}
			w.wantStored(3, dead)
		}
	}
}

// TestDeleteDueAhead: what is much is deleted while the caller's locks are given back, and what is little is left to the caller.
func TestDeleteDueAhead(t *testing.T) {
	for due, want := range map[int]int64{4: 0, 20: 20} {
		w := dueAndMore(t, due)
		c, release, err := w.store.LockToChange(ctx, tested)
		w.must(err)
		n, same, err := w.DeleteDueAhead(ctx, c, []*policy.Rule{c.ExpiryOrder().Rule})
		release()
		if n != want || !same || err != nil {
			t.Errorf("%d of %d, %v, %v", n, due, same, err)
		}
		w.wantStored(int64(due)+3-want, want)
	}
}
