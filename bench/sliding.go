package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync/atomic"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
)

// sliding are sessions: documents that live for -life from their last change on. Nine of ten are changed in turns, and
// must stay; nobody changes the tenth, and it must go.
type sliding struct {
	keys, alive  int64
	turn, missed atomic.Int64
}

const (
	slidingKeys  = 20_000 // few enough that each has its turn in time
	slidingShare = 4      // of -steady-for
)

func (w *sliding) prepare(ctx context.Context, b *bench) error {
	w.keys = min(slidingKeys, int64(b.docs))
	w.alive = w.keys * 9 / 10
	return createTTL(ctx, b.db.Collection("sessions"), slidingField(b), b.life, b.hide && b.target.ebbTTL)
}

// slidingField: servers without _ts have a date that updates set.
func slidingField(b *bench) string {
	if b.target.ebbTTL {
		return "_ts"
	}
	return "at"
}

func (w *sliding) measure(ctx context.Context, b *bench) error {
	coll := b.db.Collection("sessions")
	if _, err := coll.DeleteMany(ctx, bson.D{}); err != nil {
		return err
	}
	if err := b.load(ctx, coll, 0, w.keys); err != nil {
		return err
	}
	w.missed.Store(0)
	watching, cancel := context.WithCancel(ctx)
	defer cancel()
	watch := newCourse(b, &reclaim{target: b.target, coll: coll, field: slidingField(b), after: b.life})
	watch.start(watching)
	change := bson.D{{Key: "$inc", Value: bson.D{{Key: "hits", Value: 1}}}}
	if !b.target.ebbTTL {
		change = append(change, bson.E{Key: "$currentDate", Value: bson.D{{Key: "at", Value: true}}})
	}
	l := b.loop()
	l.length = max(b.steady/slidingShare, b.life*3/2)
	seen, err := l.run(ctx, func(ctx context.Context, _ *rand.Rand) error {
		res, err := coll.UpdateOne(ctx, bson.D{{Key: "_id", Value: idOf((w.turn.Add(1) - 1) % max(w.alive, 1))}}, change)
		if err == nil && res.MatchedCount == 0 {
			w.missed.Add(1)
		}
		watch.done.Add(1)
		return err
	})
	cancel()
	if err := watch.stop(err); err != nil {
		return err
	}
	out := seen.metrics()
	out["missed"] = float64(w.missed.Load())
	watch.into(out)
	if err := w.check(ctx, b); err != nil {
		return err
	}
	return b.tellSeries("", out, watch.series)
}

// check counts at once, before those that are alive expire too.
func (w *sliding) check(ctx context.Context, b *bench) error {
	begin := time.Now()
	n, err := b.db.Collection("sessions").CountDocuments(ctx, bson.D{})
	if missed := w.missed.Load(); err == nil && b.hide && missed == 0 && n != w.alive && time.Since(begin) < b.life/2 {
		err = fmt.Errorf("%d documents are alive, and %d were kept alive", n, w.alive)
	}
	return err
}
