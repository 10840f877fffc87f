package main

import (
	"context"
	"errors"
	"math/rand/v2"

	"go.mongodb.org/mongo-driver/v2/bson"
)

// aggregate runs a pipeline over an indexed collection, with few workers.
type aggregate struct {
	indexRange
	pipeline func(r *rand.Rand, docs int64) bson.A
}

func (w *aggregate) measure(ctx context.Context, b *bench) error {
	l, coll := b.loop(), b.db.Collection("docs")
	l.workers = min(l.workers, fewWorkers)
	seen, err := l.run(ctx, func(ctx context.Context, r *rand.Rand) error {
		cursor, err := coll.Aggregate(ctx, w.pipeline(r, int64(b.docs)))
		if err != nil {
			return err
		}
		defer cursor.Close(ctx)
		if !cursor.Next(ctx) {
			return errors.Join(errors.New("an aggregation without results"), cursor.Err())
		}
		for cursor.Next(ctx) {
		}
		return cursor.Err()
	})
	if err != nil {
		return err
	}
	return b.tell("", seen.metrics())
}

// matched is how many documents matchGroupSort takes.
const matched = 10_000

func matchGroupSort(r *rand.Rand, docs int64) bson.A {
	want := min(matched, docs)
	from := r.Int64N(docs - want + 1)
	return bson.A{
		bson.D{{Key: "$match", Value: bson.D{{Key: "seq", Value: bson.D{{Key: "$gte", Value: from}, {Key: "$lt", Value: from + want}}}}}},
		bson.D{{Key: "$group", Value: bson.D{{Key: "_id", Value: "$kind"}, {Key: "n", Value: bson.D{{Key: "$sum", Value: 1}}},
			{Key: "amount", Value: bson.D{{Key: "$sum", Value: "$amount"}}}, {Key: "score", Value: bson.D{{Key: "$avg", Value: "$score"}}}}}},
		bson.D{{Key: "$sort", Value: bson.D{{Key: "_id", Value: 1}}}},
	}
}

// groupAll finds who has most.
func groupAll(*rand.Rand, int64) bson.A {
	return bson.A{
		bson.D{{Key: "$group", Value: bson.D{{Key: "_id", Value: "$user"}, {Key: "n", Value: bson.D{{Key: "$sum", Value: 1}}}}}},
		bson.D{{Key: "$sort", Value: bson.D{{Key: "n", Value: -1}, {Key: "_id", Value: 1}}}},
		bson.D{{Key: "$limit", Value: 10}},
	}
}
