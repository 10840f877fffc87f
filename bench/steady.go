package main

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"
)

const (
	lagInterval    = 100 * time.Millisecond
	lagShare       = 20 // a look at the lag is followed by a pause of so many times what it took: it costs the server CPU
	secondInterval = time.Second
)

// steady inserts at a fixed rate what lives for a fixed time, so that after that time as much expires as comes.
type steady struct{ next atomic.Int64 }

func (w *steady) prepare(ctx context.Context, b *bench) error {
	return createTTL(ctx, b.db.Collection("steady"), "at", 0, b.hide)
}

func (w *steady) measure(ctx context.Context, b *bench) error {
	coll := b.db.Collection("steady")
	work, cancel := context.WithTimeout(ctx, b.steady)
	defer cancel()
	watch := newCourse(b, &reclaim{target: b.target, coll: coll, field: "at"})
	watch.start(work)
	m := b.target.meter()
	took := &sharedHistogram{}
	open := openLoop{rate: b.rate / float64(b.steadyBatch)}
	err := open.run(work, func(n int64) func(context.Context) error {
		first := w.next.Add(int64(b.steadyBatch)) - int64(b.steadyBatch)
		return func(ctx context.Context) error {
			r, batch := dice(int(n)), make([]any, b.steadyBatch)
			for i := range batch {
				batch[i] = document(r, first+int64(i), time.Now().Add(b.life))
			}
			_, err := coll.InsertMany(ctx, batch)
			return err
		}
	}, func(begin, end time.Time) {
		took.add(end.Sub(begin))
		watch.done.Add(int64(b.steadyBatch))
	})
	u := m.stop()
	cancel()
	if err := watch.stop(err); err != nil {
		return err
	}
	docs := watch.done.Load()
	out := metrics{"docs_s": float64(docs) / u.wall.Seconds(), "late": float64(open.late.Load())}
	took.into(out, "")
	u.into(out, docs)
	watch.into(out)
	return b.tellSeries("", out, watch.series)
}

// sharedHistogram is one for several goroutines.
type sharedHistogram struct {
	mu sync.Mutex // guards all below
	histogram
}

func (h *sharedHistogram) add(d time.Duration) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.histogram.add(d)
}

// course watches how a workload goes on, second by second: what was done, how far deleting lags, memory and disk.
type course struct {
	bench   *bench
	reclaim *reclaim
	done    atomic.Int64 // operations or documents so far
	crew    sync.WaitGroup
	worst   atomic.Int64 // lag since the last second, nanoseconds
	dead    atomic.Int64 // entries that wait to be cleaned away, when last looked at

	// Of the goroutines until stop has waited for them.
	lag      histogram
	series   map[string][]float64
	lagErr   error
	lastDone int64
	last     moment
}

func newCourse(b *bench, r *reclaim) *course {
	return &course{bench: b, reclaim: r, series: map[string][]float64{}}
}

func (c *course) start(ctx context.Context) {
	c.last = c.bench.target.now()
	c.crew.Go(func() {
		for ctx.Err() == nil {
			begin := time.Now()
			c.noteLag(ctx)
			pause(ctx, max(lagInterval, lagShare*time.Since(begin)))
		}
	})
	c.crew.Go(func() { every(ctx, secondInterval, c.noteSecond) })
}

// every does something again and again until ctx ends.
func every(ctx context.Context, interval time.Duration, do func()) {
	ticker := time.NewTicker(interval)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
			do()
		}
	}
}

func (c *course) noteLag(ctx context.Context) {
	s, err := c.reclaim.status(context.WithoutCancel(ctx))
	if err != nil {
		c.lagErr = err
		return
	}
	c.lag.add(s.lag)
	c.dead.Store(s.dead)
	for old := c.worst.Load(); int64(s.lag) > old && !c.worst.CompareAndSwap(old, int64(s.lag)); old = c.worst.Load() {
	}
}

func (c *course) noteSecond() {
	now, done := c.bench.target.now(), c.done.Load()
	c.note("per_s", float64(done-c.lastDone)/now.at.Sub(c.last.at).Seconds())
	c.note("lag_max_ms", millis(time.Duration(c.worst.Swap(0))))
	c.note("dead_entries", float64(c.dead.Load()))
	if len(c.bench.target.pids) > 0 {
		c.note("rss_mib", mebi(now.rss))
		c.note("server_cores", c.last.cores(now))
	}
	if c.bench.target.data != "" {
		now := diskUsage(c.bench.target.data)
		c.note("disk_mib", mebi(now.total))
		c.note("disk_data_mib", mebi(now.data()))
	}
	c.last, c.lastDone = now, done
}

func (c *course) note(name string, v float64) {
	c.series[name] = append(c.series[name], significant(v))
}

// stop waits for the watching that its context has ended. It hands err on, or tells its own.
func (c *course) stop(err error) error {
	c.crew.Wait()
	if err == nil && c.lagErr != nil {
		err = fmt.Errorf("watch: %w", c.lagErr)
	}
	return err
}

func (c *course) into(m metrics) {
	c.lag.into(m, "lag_")
	for _, name := range []string{"rss", "disk", "disk_data"} {
		if early, late, ok := drift(c.series[name+"_mib"]); ok {
			m[name+"_early_mib"], m[name+"_late_mib"] = early, late
		}
	}
}

// drift compares the second fifth of a series with the last: in the first, what lives for a while is still filling up.
func drift(series []float64) (early, late float64, ok bool) {
	fifth := len(series) / 5
	if fifth == 0 {
		return 0, 0, false
	}
	return summarize(series[fifth : 2*fifth]).median, summarize(series[len(series)-fifth:]).median, true
}
