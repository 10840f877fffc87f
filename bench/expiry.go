package main

import (
	"context"
	"fmt"
	"sync"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
)

const (
	loadRate     = 20_000 // documents a second that every server loads, for the reckoning of -lead
	settleTime   = 12 * time.Second
	baselineTime = 2 * time.Second // before the deadline, in which what the server does anyway is measured
	pollInterval = 20 * time.Millisecond
	calmInterval = 250 * time.Millisecond // beside probes: they would wait for the polls
	pollShare    = 10                     // a poll is followed by a pause of so many times what it took: polls cost CPU too
	expiryLimit  = 30 * time.Minute
	diskTime     = 30 * time.Second // after the deadline, to give space back
	diskInterval = 250 * time.Millisecond
	diskSlack    = 1.10
	dataSlack    = 1 << 20 // bytes that a store without documents may grow by: its books
)

// expiry lets many documents expire at one moment, and watches from outside what becomes of them.
type expiry struct {
	probed    bool
	half      bool // of twice as many documents
	emptyDisk disk
}

// prepare looks at the disk of an empty collection.
func (w *expiry) prepare(ctx context.Context, b *bench) error {
	if err := w.fresh(ctx, b); err != nil {
		return err
	}
	if b.target.data != "" {
		w.emptyDisk = diskUsage(b.target.data)
	}
	return nil
}

// ttlOfExpiry is the TTL of the index: dates lie so long before the deadline.
const ttlOfExpiry = time.Second

func (w *expiry) fresh(ctx context.Context, b *bench) error {
	coll := b.db.Collection("ttl")
	if err := coll.Drop(ctx); err != nil {
		return err
	}
	if err := createTTL(ctx, coll, "at", ttlOfExpiry, b.hide); err != nil || !w.half {
		return err
	}
	return createIndex(ctx, coll, bson.D{{Key: "amount", Value: 1}})
}

func (w *expiry) measure(ctx context.Context, b *bench) error {
	if err := w.fresh(ctx, b); err != nil {
		return err
	}
	death := &death{bench: b, probed: w.probed, documents: int64(b.expiryDocs), out: metrics{}, series: map[string][]float64{}, emptyDisk: w.emptyDisk,
		reclaim: reclaim{target: b.target, coll: b.db.Collection("ttl"), field: "at", after: ttlOfExpiry, dated: bson.D{}}}
	if w.half {
		death.reclaim.stay = death.documents
	}
	if err := death.load(ctx); err != nil {
		return err
	}
	var p *probes
	if w.probed {
		var err error
		if p, err = startProbes(ctx, b); err != nil {
			return err
		}
	}
	err := death.watch(ctx)
	if p != nil {
		pause(ctx, time.Until(death.deadline)+b.probeFor)
		if failed := p.stop(); err == nil {
			err = failed
		}
		p.into(death, b.probeFor, b.probeFor)
	}
	if err != nil {
		return err
	}
	return b.tellSeries("", death.out, death.series)
}

// death is one time that documents expire.
type death struct {
	*bench
	reclaim   reclaim
	probed    bool
	documents int64
	emptyDisk disk
	deadline  time.Time
	before    int64 // deleted documents by the server's count before the deadline
	out       metrics

	baseline float64 // processors that the server keeps busy without expiry
	quietAt  time.Time
	series   map[string][]float64
}

// loaded is how many documents there are before the deadline.
func (d *death) loaded() int64 { return d.documents + d.reclaim.stay }

// frees says whether the disk should be as it was in the end, and can be looked at.
func (d *death) frees() bool { return d.target.data != "" && d.reclaim.stay == 0 }

func (d *death) load(ctx context.Context) (err error) {
	if d.before, _, err = d.reclaim.deleted(ctx); err != nil {
		return err
	}
	lead := d.lead
	if lead == 0 {
		lead = time.Duration(float64(d.loaded())/loadRate*float64(time.Second)) + settleTime
		if d.probed {
			lead += d.probeFor
		}
	}
	d.deadline = time.Now().Add(lead).Truncate(time.Millisecond)
	if d.reclaim.stay > 0 { // to count all would be to look at those that stay
		d.reclaim.dated = bson.D{{Key: d.reclaim.field, Value: d.deadline.Add(-ttlOfExpiry)}}
	}
	begin := time.Now()
	l := loading{bench: d.bench, coll: d.reclaim.coll, to: d.loaded(), at: d.deadline.Add(-ttlOfExpiry), half: d.reclaim.stay > 0}
	if _, err := l.run(ctx); err != nil {
		return err
	}
	d.out["load_docs_s"] = float64(d.loaded()) / time.Since(begin).Seconds()
	if left := time.Until(d.deadline); left < min(baselineTime, lead/2) {
		return fmt.Errorf("loading took until %v before the deadline: give a longer -lead than %v", left, lead)
	}
	if d.frees() {
		d.noteDisk("empty", d.emptyDisk)
		d.noteDisk("full", diskUsage(d.target.data))
	}
	return nil
}

func (d *death) watch(ctx context.Context) error {
	pause(ctx, time.Until(d.deadline)-baselineTime)
	idle := d.target.now()
	pause(ctx, time.Until(d.deadline))
	m := d.target.meter()
	d.baseline = idle.cores(m.begin)
	if err := d.poll(ctx); err != nil {
		return err
	}
	gone := d.target.now()
	quiet, err := d.awaitQuiet(ctx, gone)
	if err != nil {
		return err
	}
	if d.frees() {
		d.awaitDisk(ctx)
	}
	u := m.stop()
	u.into(d.out, 0)
	d.quietAt = quiet.at
	if len(d.target.pids) > 0 {
		d.out["quiet_ms"] = millis(quiet.at.Sub(d.deadline))
		if !d.probed { // probes cost more, and not evenly
			d.out["server_us_free"], d.out["server_us_all"] = d.cost(m.begin, gone), d.cost(m.begin, quiet)
		}
	}
	return ctx.Err()
}

// cores is how many processors the server kept busy between two moments.
func (a moment) cores(b moment) float64 {
	if b.at.Equal(a.at) {
		return 0
	}
	return (b.server - a.server).Seconds() / b.at.Sub(a.at).Seconds()
}

// cost is the server's CPU a document from a to b, less what it would have used anyway.
func (d *death) cost(a, b moment) float64 {
	anyway := d.baseline * b.at.Sub(a.at).Seconds()
	return ((b.server - a.server).Seconds() - anyway) * 1e6 / float64(d.documents)
}

// poll goes on until nothing is visible, and nothing stored.
func (d *death) poll(ctx context.Context) error {
	invisible := false
	for first := true; ; first = false {
		begin := time.Now()
		if !invisible {
			n, err := d.reclaim.coll.CountDocuments(ctx, d.reclaim.dated)
			if err != nil {
				return err
			}
			if first {
				d.out["visible_first"], d.out["first_query_ms"] = float64(n), millis(begin.Sub(d.deadline))
			}
			if invisible = n == 0; invisible {
				d.out["invisible_ms"] = millis(time.Since(d.deadline))
			}
		}
		switch gone, err := d.reclaim.gone(ctx, d.before, d.documents); {
		case err != nil:
			return err
		case gone && invisible:
			d.out["gone_ms"] = millis(time.Since(d.deadline))
			return nil
		case time.Since(d.deadline) > expiryLimit:
			return fmt.Errorf("not gone %v after the deadline", expiryLimit)
		}
		interval := pollInterval
		if d.probed {
			interval = calmInterval
		}
		pause(ctx, max(interval, pollShare*time.Since(begin)))
	}
}

// The server is quiet when it uses little more than before the deadline: a tick of the kernel's clock in each interval
// may be chance.
const (
	quietInterval = 250 * time.Millisecond
	quietCores    = 0.05
	quietFactor   = 1.5
	quietLimit    = 3 * time.Minute
)

// awaitQuiet returns the moment from which on the server has been quiet for -quiet, with nothing left to clean.
func (d *death) awaitQuiet(ctx context.Context, since moment) (moment, error) {
	if len(d.target.pids) == 0 {
		return since, nil
	}
	since, err := d.awaitClean(ctx, since)
	if err != nil {
		return since, err
	}
	begin := since.at
	for last := since; ctx.Err() == nil && last.at.Sub(since.at) < d.quiet && last.at.Sub(begin) < quietLimit; {
		pause(ctx, quietInterval)
		next := d.target.now()
		if last.cores(next) > quietFactor*d.baseline+quietCores {
			since = next
		}
		last = next
		d.lookAtDisk()
	}
	return since, nil
}

// awaitClean asks until no index entries are left of what is gone. Afterwards nobody asks any more: a server that is asked
// is not quiet.
func (d *death) awaitClean(ctx context.Context, since moment) (moment, error) {
	for {
		begin := time.Now()
		s, err := d.reclaim.status(ctx)
		if err != nil {
			return since, err
		}
		now := d.target.now()
		switch d.out["dead_entries"] = float64(s.dead); {
		case s.dead == 0:
			d.out["cleaned_ms"] = millis(now.at.Sub(d.deadline))
			return now, nil
		case now.at.Sub(since.at) > quietLimit || ctx.Err() != nil:
			return now, ctx.Err()
		}
		d.lookAtDisk()
		pause(ctx, max(quietInterval, lagShare*time.Since(begin)))
	}
}

func (d *death) noteDisk(when string, now disk) {
	d.out["disk_"+when+"_mib"], d.out["data_"+when+"_mib"] = mebi(now.total), mebi(now.data())
}

func (d *death) lookAtDisk() {
	if !d.frees() {
		return
	}
	now := diskUsage(d.target.data)
	d.series["disk_mib"] = append(d.series["disk_mib"], mebi(now.total))
	if d.out["disk_back_ms"] == 0 && float64(now.total) <= diskSlack*float64(d.emptyDisk.total) {
		d.out["disk_back_ms"] = millis(time.Since(d.deadline))
	}
	if d.out["data_back_ms"] == 0 && float64(now.data()) <= diskSlack*float64(d.emptyDisk.data())+dataSlack {
		d.out["data_back_ms"] = millis(time.Since(d.deadline))
	}
}

// awaitDisk looks at the disk until it is as it was, or the time for that is over.
func (d *death) awaitDisk(ctx context.Context) {
	back := func() bool { return d.out["disk_back_ms"] > 0 && d.out["data_back_ms"] > 0 }
	for d.lookAtDisk(); ctx.Err() == nil && !back() && time.Since(d.deadline) < diskTime; d.lookAtDisk() {
		pause(ctx, diskInterval)
	}
	after := diskUsage(d.target.data)
	d.noteDisk("after", after)
	if d.emptyDisk.total > 0 {
		d.out["disk_after_per_empty"] = float64(after.total) / float64(d.emptyDisk.total)
	}
}

const (
	probeDocs = 10_000 // in the collection that is probed
	// probeAhead is how long before the deadline the time begins that counts as with it.
	probeAhead = time.Second
	// probeWarm is the beginning that is not counted: connections are made.
	probeWarm = time.Second
)

// probes are finds and inserts on another collection, each at -probe a second.
type probes struct {
	cancel context.CancelFunc
	crew   sync.WaitGroup
	begin  time.Time

	mu struct { // guards all below
		sync.Mutex
		late    int64
		samples map[string][]sample
		err     error
	}
}

type sample struct {
	at   time.Time
	took time.Duration
}

func startProbes(ctx context.Context, b *bench) (*probes, error) {
	coll := b.db.Collection("probe")
	if err := coll.Drop(ctx); err != nil {
		return nil, err
	}
	if err := b.load(ctx, coll, 0, probeDocs); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(ctx)
	p := &probes{cancel: cancel, begin: time.Now()}
	p.mu.samples = map[string][]sample{}
	find := findByID(coll, probeDocs)
	p.start(ctx, b, "find", func(n int64) operation { return find })
	p.start(ctx, b, "insert", func(n int64) operation { return insertNth(coll, probeDocs+n) })
	return p, nil
}

func (p *probes) start(ctx context.Context, b *bench, kind string, nth func(n int64) operation) {
	p.crew.Go(func() {
		open := openLoop{rate: b.probe}
		err := open.run(ctx, func(n int64) func(context.Context) error {
			op := nth(n)
			return func(ctx context.Context) error { return op(ctx, dice(int(n))) }
		}, func(begin, end time.Time) {
			p.mu.Lock()
			defer p.mu.Unlock()
			p.mu.samples[kind] = append(p.mu.samples[kind], sample{begin, end.Sub(begin)})
		})
		p.mu.Lock()
		defer p.mu.Unlock()
		p.mu.late += open.late.Load()
		if err != nil && p.mu.err == nil {
			p.mu.err = fmt.Errorf("probe: %s: %w", kind, err)
		}
	})
}

func (p *probes) stop() error {
	p.cancel()
	p.crew.Wait()
	return p.mu.err
}

// into adds the latencies of so long before the deadline, and of so long with it, or until the server was quiet again.
func (p *probes) into(d *death, before, after time.Duration) {
	from := d.deadline.Add(-probeAhead)
	to := d.deadline.Add(after)
	if d.quietAt.After(to) {
		to = d.quietAt
	}
	begin := from.Add(-before)
	if warm := p.begin.Add(probeWarm); warm.After(begin) {
		begin = warm
	}
	for kind, samples := range p.mu.samples {
		quiet, during := between(samples, begin, from), between(samples, from, to)
		quiet.into(d.out, kind+"_before_")
		during.into(d.out, kind+"_during_")
		d.out[kind+"_before_n"], d.out[kind+"_during_n"] = float64(quiet.n), float64(during.n)
		if quiet.n > 0 && during.n > 0 {
			d.out[kind+"_p99_ratio"] = millis(during.quantile(0.99)) / millis(quiet.quantile(0.99))
		}
		for at := begin; at.Before(to); at = at.Add(time.Second) {
			second := between(samples, at, at.Add(time.Second))
			d.series[kind+"_p99_ms"] = append(d.series[kind+"_p99_ms"], millis(second.quantile(0.99)))
		}
	}
	d.out["late"] = float64(p.mu.late)
}

// between counts the samples that began in [from, to).
func between(samples []sample, from, to time.Time) *histogram {
	h := &histogram{}
	for _, s := range samples {
		if !s.at.Before(from) && s.at.Before(to) {
			h.add(s.took)
		}
	}
	return h
}
