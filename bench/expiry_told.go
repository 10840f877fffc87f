package main

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// toldExpiry lets many documents expire at one moment, of each of which a change stream tells, beside finds and inserts on another collection.
// Nobody asks the server how far it is: the stream tells.
type toldExpiry struct{ expiry }

func (w *toldExpiry) measure(ctx context.Context, b *bench) (err error) {
	if err := w.fresh(ctx, b); err != nil {
		return err
	}
	coll := b.db.Collection("ttl")
	d := &death{bench: b, probed: true, documents: int64(b.expiryDocs), out: metrics{}, series: map[string][]float64{}, emptyDisk: w.emptyDisk,
		reclaim: reclaim{target: b.target, coll: coll, field: "at", after: ttlOfExpiry}}
	if err := d.load(ctx); err != nil {
		return err
	}
	ctx, stop := context.WithTimeout(ctx, expiryLimit) // an event that is lost would be waited for
	defer stop()
	listener, err := startOther(ctx, listenerVerb, listening{URL: b.target.url, Database: b.database, Collection: coll.Name(), Events: d.documents})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, listener.end()) }()
	if err := listener.await(&listens{}); err != nil {
		return err
	}
	if left := time.Until(d.deadline); left <= 0 { // what is gone is told to nobody who comes later
		return fmt.Errorf("listening began %v after the deadline: give a longer -lead than %v", -left, b.lead)
	}
	p, err := startProbes(ctx, b)
	if err != nil {
		return err
	}
	h, u, err := w.watch(ctx, d, listener)
	if err = errors.Join(err, p.stop()); err != nil {
		return err
	}
	d.quietAt = h.Last
	p.into(d, b.probeFor, 0)
	d.out["first_event_ms"], d.out["last_event_ms"] = millis(h.First.Sub(d.deadline)), millis(h.Last.Sub(d.deadline))
	d.out["listener_us"] = micros(h.CPU) / float64(d.documents)
	u.into(d.out, 0)
	d.out["server_us"] = (d.out["server_cores"] - d.baseline) * micros(u.wall) / float64(d.documents)
	return b.tellSeries("", d.out, d.series)
}

// watch waits until the stream has told of all.
func (w *toldExpiry) watch(ctx context.Context, d *death, listener *otherClients) (h heard, u usage, err error) {
	pause(ctx, time.Until(d.deadline)-baselineTime)
	idle := d.target.now()
	pause(ctx, time.Until(d.deadline))
	m := d.target.meter()
	d.baseline = idle.cores(m.begin)
	err = listener.await(&h)
	return h, m.stop(), err
}
