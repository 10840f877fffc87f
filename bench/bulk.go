package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"
)

// farAway is a TTL that no measuring lives to see.
const farAway = 365 * 24 * time.Hour

// bulk loads an empty collection, over and over.
type bulk struct {
	ttl     bool
	indexes int
}

func (*bulk) prepare(context.Context, *bench) error { return nil }

func (w *bulk) measure(ctx context.Context, b *bench) error {
	coll := b.db.Collection("docs")
	if err := coll.Drop(ctx); err != nil {
		return err
	}
	if err := w.createIndexes(ctx, coll); err != nil {
		return err
	}
	m := b.target.meter()
	l := loading{bench: b, coll: coll, to: int64(b.docs)}
	batches, err := l.run(ctx)
	if err != nil {
		return err
	}
	u := m.stop()
	out := metrics{"docs_s": float64(b.docs) / u.wall.Seconds()}
	batches.into(out, "")
	u.into(out, int64(b.docs))
	return b.tell("", out)
}

func (w *bulk) createIndexes(ctx context.Context, coll *mongo.Collection) error {
	if w.ttl {
		if err := createTTL(ctx, coll, "at", farAway, false); err != nil {
			return err
		}
	}
	for _, keys := range secondary()[:w.indexes] {
		if err := createIndex(ctx, coll, keys); err != nil {
			return err
		}
	}
	return nil
}

func createIndex(ctx context.Context, coll *mongo.Collection, keys bson.D) error {
	if _, err := coll.Indexes().CreateOne(ctx, mongo.IndexModel{Keys: keys}); err != nil {
		return fmt.Errorf("create an index: %w", err)
	}
	return nil
}

// createTTL speaks to the server itself where the driver does not know the option.
func createTTL(ctx context.Context, coll *mongo.Collection, field string, after time.Duration, hide bool) error {
	index := bson.D{{Key: "name", Value: "ttl"}, {Key: "key", Value: bson.D{{Key: field, Value: 1}}}, {Key: "expireAfterSeconds", Value: int(after.Seconds())}}
	if hide {
		index = append(index, bson.E{Key: "hideExpired", Value: true})
	}
	err := coll.Database().RunCommand(ctx, bson.D{{Key: "createIndexes", Value: coll.Name()}, {Key: "indexes", Value: bson.A{index}}}).Err()
	if err != nil && hide {
		return fmt.Errorf("create a TTL index (-hide=false for servers without hideExpired): %w", err)
	}
	return err
}

// loading inserts documents from..to-1 in batches.
type loading struct {
	*bench
	coll     *mongo.Collection
	from, to int64
	at       time.Time // of all documents; zero: when each batch is made
	half     bool      // every second one is dated far behind at
}

// run returns how long the batches took.
func (l *loading) run(ctx context.Context) (*histogram, error) {
	ctx, fail := context.WithCancelCause(ctx)
	defer fail(nil)
	var next atomic.Int64
	next.Store(l.from)
	parts := make([]histogram, l.loaders)
	var crew sync.WaitGroup
	for w := range l.loaders {
		crew.Go(func() {
			if err := l.work(ctx, &next, dice(w), &parts[w]); err != nil {
				fail(err)
			}
		})
	}
	crew.Wait()
	for w := range parts[1:] {
		parts[0].merge(&parts[w+1])
	}
	return &parts[0], context.Cause(ctx)
}

func (l *loading) work(ctx context.Context, next *atomic.Int64, r *rand.Rand, took *histogram) error {
	batch := make([]any, 0, l.batch)
	for {
		hi := next.Add(int64(l.batch))
		lo := hi - int64(l.batch)
		if lo >= l.to {
			return nil
		}
		batch = batch[:0]
		at := l.at
		if at.IsZero() {
			at = time.Now()
		}
		for n := lo; n < min(hi, l.to); n++ {
			if l.half && n%2 == 1 {
				batch = append(batch, document(r, n, at.Add(farAway)))
				continue
			}
			batch = append(batch, document(r, n, at))
		}
		begin := time.Now()
		if _, err := l.coll.InsertMany(ctx, batch, options.InsertMany().SetOrdered(true)); err != nil {
			return fmt.Errorf("insertMany: %w", err)
		}
		took.add(time.Since(begin))
	}
}

// load is loading of what a workload starts from.
func (b *bench) load(ctx context.Context, coll *mongo.Collection, from, to int64) error {
	l := loading{bench: b, coll: coll, from: from, to: to}
	_, err := l.run(ctx)
	return err
}
