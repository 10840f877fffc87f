package storage

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/ebbdb/ebb/internal/clock"
	"github.com/ebbdb/ebb/internal/host"
)

// BenchmarkVacuum removes the entries of b.N records that were swept from two indexes, on _id and another, in random order
// in both. What is told is of processor time for each dead record, until the store is quiet: compactions count.
func BenchmarkVacuum(b *testing.B) {
	for _, share := range []struct{ living, of int }{{1, 10}, {1, 2}, {3, 4}, {9, 10}} {
		b.Run(fmt.Sprintf("living=%d of %d", share.living, share.of), func(b *testing.B) { benchVacuum(b, share.living, share.of) })
	}
}

func benchVacuum(b *testing.B, living, of int) {
	if b.N == 1 { // which the testing package does first, and the quiet takes long
		return
	}
	dir := b.TempDir()
	f := benchStoreIn(b, dir, `{key: {d: 1}, name: "d", expireAfterSeconds: 1}`, `{key: {a: 1}, name: "a"}`)
	f.benchMixed(b, max(b.N, 2*int(f.Bounds().Few))*of/(of-living), living, of)
	f.clock.Advance(time.Second)
	f.reopenBench(b, dir)
	c := f.current.Load().collections[f.current.Load().catalog.Collection(benchNS).ID]
	awaitQuiet()
	b.ResetTimer()
	done, ok, err := f.Sweep(context.Background(), c.ID, c.order.Rule, f.Now())
	if err != nil || !ok {
		b.Fatal(ok, err)
	}
	before, started := cpuMicros(), time.Now()
	for more := true; more; {
		if _, more, err = f.Vacuum(context.Background(), c.ID, 2000); err != nil {
			b.Fatal(err)
		}
	}
	took, after := time.Since(started), cpuMicros()
	b.StopTimer()
	awaitQuiet()
	n := float64(done.Documents)
	b.ReportMetric(float64(took.Microseconds())/n, "µs/dead")
	b.ReportMetric(float64(after-before)/n, "µs-cpu/dead")
	b.ReportMetric(float64(cpuMicros()-before)/n, "µs-cpu-quiet/dead")
}

// benchMixed inserts so many documents, of which so many of so many do not expire soon, at random.
func (f *fixture) benchMixed(b *testing.B, count, living, of int) {
	dice := rand.New(rand.NewPCG(1, 2))
	dates := make([]int64, count)
	for i := range dates {
		dates[i] = epoch.UnixMilli()
		if dice.IntN(of) < living {
			dates[i] += 1e9
		}
	}
	f.benchInsertDated(b, dates, dice.Perm(count))
}

// reopenBench opens the store anew, after which nothing of what was inserted is left to be flushed.
func (f *fixture) reopenBench(b *testing.B, dir string) {
	if err := errors.Join(f.Close(), f.Store.engine.Close()); err != nil {
		b.Fatal(err)
	}
	f.openBench(b, dir)
}

func cpuMicros() int64 {
	u := host.Used()
	return u.UserMicros + u.SystemMicros
}

// awaitQuiet waits until the process has been idle for longer than the engine takes to look after what was deleted.
func awaitQuiet() {
	const window, windows, idle = 250 * time.Millisecond, 48, 10_000
	for quiet := 0; quiet < windows; quiet++ {
		before := cpuMicros()
		_ = clock.Wait(context.Background(), clock.Wall(), window)
		if cpuMicros()-before > idle {
			quiet = 0
		}
	}
}
