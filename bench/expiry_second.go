package main

import (
	"context"
	"fmt"
	"sync"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
)

// secondExpiry lets documents expire by the second TTL index of their collection, which cannot be deleted as one range, while
// one client asks for documents of another collection as fast as it is answered.
type secondExpiry struct{}

func (w *secondExpiry) prepare(ctx context.Context, b *bench) error {
	return b.load(ctx, b.db.Collection("read"), 0, probeDocs)
}

func (w *secondExpiry) measure(ctx context.Context, b *bench) (err error) {
	coll := b.db.Collection("ttl")
	if err := coll.Drop(ctx); err != nil {
		return err
	}
	if err := createTTL(ctx, coll, "later", 0, false); err != nil {
		return err
	}
	if err := createIndex(ctx, coll, bson.D{{Key: "user", Value: 1}}); err != nil {
		return err
	}
	second := bson.D{{Key: "name", Value: "second"}, {Key: "key", Value: bson.D{{Key: "at", Value: 1}}}, {Key: "expireAfterSeconds", Value: 0}}
	if err := coll.Database().RunCommand(ctx, bson.D{{Key: "createIndexes", Value: coll.Name()}, {Key: "indexes", Value: bson.A{second}}}).Err(); err != nil {
		return fmt.Errorf("create the second TTL index: %w", err)
	}
	if err := w.monitor(ctx, b, false); err != nil {
		return err
	}
	defer func() {
		if on := w.monitor(ctx, b, true); err == nil {
			err = on
		}
	}()
	if err := w.fill(ctx, b); err != nil {
		return err
	}
	pause(ctx, b.quiet) // until what loading leaves behind is done
	r := &secondReader{}
	reading, stop := context.WithCancel(ctx)
	defer stop()
	r.crew.Go(func() { r.read(reading, findByID(b.db.Collection("read"), probeDocs)) })
	pause(ctx, b.warm)
	out, err := w.watch(ctx, b, r)
	stop()
	r.crew.Wait()
	if err != nil {
		return err
	}
	if r.mu.err != nil {
		return r.mu.err
	}
	return b.tell("", out)
}

// watch measures the reader alone, for as long as a probe, and then beside the expiry.
func (w *secondExpiry) watch(ctx context.Context, b *bench, r *secondReader) (metrics, error) {
	r.take()
	begin := b.target.now()
	pause(ctx, b.probeFor/4)
	before, alone := r.take(), begin.until(b.target.now())
	begin = b.target.now()
	if err := w.monitor(ctx, b, true); err != nil {
		return nil, err
	}
	for {
		pause(ctx, pollInterval)
		left, err := b.db.Collection("ttl").EstimatedDocumentCount(ctx) // which costs the server next to nothing
		if err != nil {
			return nil, err
		}
		if left == 0 {
			break
		}
		if time.Since(begin.at) > expiryLimit {
			return nil, fmt.Errorf("%d documents are left after %v", left, expiryLimit)
		}
	}
	took := begin.until(b.target.now())
	during := r.take()
	out := metrics{"docs_s": float64(b.expiryDocs) / took.wall.Seconds()}
	before.into(out, "find_before_")
	during.into(out, "find_during_")
	out["find_before_s"], out["find_during_s"] = float64(before.n)/alone.wall.Seconds(), float64(during.n)/took.wall.Seconds()
	took.into(out, 0)
	if len(b.target.pids) > 0 && before.n > 0 {
		reads := micros(alone.server) / float64(before.n) * float64(during.n)
		out["server_us"] = (micros(took.server) - reads) / float64(b.expiryDocs)
	}
	return out, nil
}

// fill inserts the documents, whose second date has come.
func (w *secondExpiry) fill(ctx context.Context, b *bench) error {
	coll, r, now := b.db.Collection("ttl"), dice(0), time.Now()
	for from := 0; from < b.expiryDocs; from += b.batch {
		var batch []any
		for n := from; n < min(from+b.batch, b.expiryDocs); n++ {
			later := bson.NewDateTimeFromTime(now.Add(farAway + time.Duration(n)*time.Millisecond))
			batch = append(batch, append(document(r, int64(n), now), bson.E{Key: "later", Value: later}))
		}
		if _, err := coll.InsertMany(ctx, batch); err != nil {
			return err
		}
	}
	return nil
}

func (w *secondExpiry) monitor(ctx context.Context, b *bench, on bool) error {
	return b.target.client.Database("admin").RunCommand(ctx, bson.D{{Key: "setParameter", Value: 1}, {Key: "ttlMonitorEnabled", Value: on}}).Err()
}

// secondReader is the client that reads.
type secondReader struct {
	crew sync.WaitGroup

	mu struct { // guards all below
		sync.Mutex
		histogram
		err error
	}
}

func (r *secondReader) read(ctx context.Context, find operation) {
	for d := dice(1); ctx.Err() == nil; {
		begin := time.Now()
		err := find(ctx, d)
		took := time.Since(begin)
		if ctx.Err() != nil {
			return
		}
		r.mu.Lock()
		if err != nil {
			r.mu.err = err
			r.mu.Unlock()
			return
		}
		r.mu.add(took)
		r.mu.Unlock()
	}
}

// take is what was read since it was last called.
func (r *secondReader) take() *histogram {
	r.mu.Lock()
	defer r.mu.Unlock()
	h := r.mu.histogram
	r.mu.histogram = histogram{}
	return &h
}
