package tikvkv_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/ebbdb/ebb/internal/clock"
	"github.com/ebbdb/ebb/internal/kv"
	"github.com/ebbdb/ebb/internal/kv/tikvkv"
	"github.com/ebbdb/ebb/internal/kv/tikvkv/tikvtest"
	"github.com/ebbdb/ebb/internal/testseed"
)

// follower is a Follower of an engine, and some of its views that are kept.
type follower struct {
	*tikvkv.Follower
	of    *tikvkv.Engine
	views []kv.Snapshot
	were  []contents
}

// begin follows an engine from now on.
func (r *ranges) begin() *follower {
	r.Helper()
	at, err := r.Latest()
	r.must(err)
	f, err := tikvkv.FollowStore(r.Context(), r.cluster.Store(r.T), tikvkv.Options{Clock: r.clock, RowCacheBytes: 1 << 20}, fmt.Sprint(r.random.Uint64()), at)
	r.must(err)
	return &follower{Follower: f, of: r.Engine}
}

func (f *follower) end(r *ranges) {
	r.Helper()
	for i, s := range f.views {
		r.checkView(s, f.were[i])
		r.must(s.Close())
	}
	r.must(f.Close())
}

// catchUp has the follower know all that was committed.
func (f *follower) catchUp(r *ranges) {
	r.Helper()
	for {
		told, err := r.Since(f.Place())
		r.must(err)
		r.must(f.Follow(told, func(c *kv.Commit) error { return f.Apply(context.Background(), c, kv.Synced) }))
		if !told.More {
			break
		}
	}
	n, millis := f.Last()
	if number, time := r.Last(); n != number || millis != time {
		r.Fatalf("the follower is at commit %d of %d, and the other at %d of %d", n, millis, number, time)
	}
}

// TestFollower: what TestDeletedRanges does, and a second server that follows sees at each moment what the first one does, with its cache, its tombstones and the
// views that it keeps; and none of it after the keyspace was taken over.
func TestFollower(t *testing.T) {
	seed := testseed.Of(t)
	r := &ranges{T: t, cluster: tikvtest.New(t, "k020", "k040", "k070"), clock: tikvtest.ProcessClock(t), random: rand.New(rand.NewPCG(seed, 8)), now: contents{}}
	r.open()
	f := r.begin()
	for range 400 {
		r.step()
		if f.of != r.Engine {
			f.end(r)
			f = r.begin()
			r.check(f, r.now)
		}
		switch r.random.IntN(6) {
		case 0, 1:
			f.catchUp(r)
			r.check(f, r.now)
		case 2:
			f.catchUp(r)
			s, err := f.Snapshot()
			r.must(err)
			f.views, f.were = append(f.views, s), append(f.were, r.copied())
		case 3:
			if n := len(f.views); n > 0 {
				i := r.random.IntN(n)
				r.checkView(f.views[i], f.were[i])
			}
		}
	}
	r.closeViews()
	f.catchUp(r)
	r.check(f, r.now)
	f.end(r)
	r.must(r.Close())
	if _, err := r.Since(0); !errors.Is(err, kv.ErrClosed) && !errors.Is(err, tikvkv.ErrBehind) {
		t.Errorf("an engine that is closed tells others %v", err)
	}
}

// TestFollowerIsBehind: who has not asked for long is told that it has to begin anew. Of a large transaction little is told.
func TestFollowerIsBehind(t *testing.T) {
	r := &ranges{T: t, cluster: tikvtest.New(t), clock: tikvtest.ProcessClock(t), random: rand.New(rand.NewPCG(1, 1)), now: contents{}}
	r.open()
	f := r.begin()
	writes := 0
	put := func(n int) {
		t.Helper()
		txn, err := r.Begin()
		r.must(err)
		writes++
		for i := range n {
			txn.Set(fmt.Appendf(nil, "%0100d", i), fmt.Append(nil, "v", writes))
		}
		r.must(txn.Commit(t.Context(), kv.Synced))
	}
	put(1)
	f.catchUp(r)
	see := func(n int) {
		t.Helper()
		s, err := f.Snapshot()
		r.must(err)
		defer s.Close()
		for i := range n {
			if value, err := s.Get(fmt.Appendf(nil, "%0100d", i)); err != nil || string(value) != fmt.Sprint("v", writes) {
				t.Fatalf("key %d is %q, %v; want what transaction %d wrote", i, value, err, writes)
			}
		}
	}
	see(1)
	put(50_000) // of which but the number is told, and the cache is empty then
	f.catchUp(r)
	see(10)
	put(10)
	f.catchUp(r)
	see(10)
	r.clock.(*clock.Fake).Advance(time.Minute)
	put(2)
	put(1)
	if _, err := r.Since(f.Place()); !errors.Is(err, tikvkv.ErrBehind) {
		t.Errorf("after a minute a follower is told %v", err)
	}
	f.end(r)
	r.must(r.Close())
}

// TestFollowerWritesNothing: it refuses all that would change the keyspace, and Commits that nobody has told of.
func TestFollowerWritesNothing(t *testing.T) {
	r := &ranges{T: t, cluster: tikvtest.New(t), clock: tikvtest.ProcessClock(t), random: rand.New(rand.NewPCG(1, 1)), now: contents{}}
	r.open()
	f := r.begin()
	for what, write := range map[string]func() error{
		"Commit": func() error {
			txn, err := f.Begin()
			r.must(err)
			txn.Set([]byte("a"), []byte("1"))
			return txn.Commit(t.Context(), kv.Synced)
		},
		"DeleteRange": func() error { return f.DeleteRange([]byte("a"), []byte("b")) },
		"Room":        func() error { return f.Room(1) },
	} {
		if err := write(); !errors.Is(err, kv.ErrReadOnly) {
			t.Errorf("%s says %v", what, err)
		}
	}
	txn, err := f.BeginBlind()
	r.must(err)
	if _, err := txn.Get([]byte("a")); !errors.Is(err, kv.ErrNotFound) {
		t.Errorf("a transaction finds %v", err)
	}
	r.must(txn.Commit(t.Context(), kv.Synced))
	w := &kv.WriteList{Ops: []kv.Op{{Key: []byte("a"), Value: []byte("1")}}}
	if err := f.Apply(t.Context(), &kv.Commit{Number: 1, Time: 1, Writes: w}, kv.Synced); !errors.Is(err, kv.ErrOrder) {
		t.Errorf("a commit that nobody tells of is taken: %v", err)
	}
	if err := f.Follow(tikvkv.Told{Place: 3}, nil); err == nil {
		t.Error("groups that are missing are not missed")
	}
	f.end(r)
	r.must(r.Close())
}
