package storage

import (
	"context"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/ebbdb/ebb/internal/kv"
	"github.com/ebbdb/ebb/internal/kv/tikvkv"
	"github.com/ebbdb/ebb/internal/kv/tikvkv/tikvtest"
)

// TestReplayBeside is TestReplay over TiKV, with a second store that reads the same keys, and is told of the first one's groups of commits.
func TestReplayBeside(t *testing.T) {
	seed := *seedFlag
	if seed == 0 {
		seed = rand.Uint64()
	}
	t.Logf("go test ./internal/storage -run TestReplayBeside -seed %d -replay-for %v", seed, *replayFor)
	cluster, process := tikvtest.New(t), tikvtest.ProcessClock(t)
	engine := cluster.Open(t, tikvkv.Options{Clock: process, Keep: time.Minute})
	newReplayOver(t, seed, engine, func(r *replay) kv.Engine {
		at, err := engine.Latest()
		r.must(err)
		beside, err := tikvkv.FollowStore(t.Context(), cluster.Store(t), tikvkv.Options{Clock: process, RowCacheBytes: 1 << 20}, "beside", at)
		r.must(err)
		r.ask = func() {
			for more := true; more; {
				told, err := engine.Since(beside.Place())
				r.must(err)
				more = told.More
				r.must(beside.Follow(told, func(c *kv.Commit) error {
					r.follower.applied++
					return r.follower.Apply(context.Background(), c, kv.Buffered)
				}))
			}
		}
		return beside
	}).run()
}
