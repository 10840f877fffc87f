package main

import (
	"context"
	"math/rand/v2"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"
)

// rangeLength is how many neighbours a range has. They fit into a first batch.
const rangeLength = 100

// indexRange reads neighbours by a secondary index.
type indexRange struct{ covered bool }

func (*indexRange) prepare(ctx context.Context, b *bench) error {
	coll := b.db.Collection("docs")
	if err := createIndex(ctx, coll, secondary()[0]); err != nil {
		return err
	}
	return b.load(ctx, coll, 0, int64(b.docs))
}

func (w *indexRange) measure(ctx context.Context, b *bench) error {
	seen, err := b.loop().run(ctx, neighbours(b.db.Collection("docs"), int64(b.docs), w.covered))
	if err != nil {
		return err
	}
	return b.tell("", seen.metrics())
}

func neighbours(coll *mongo.Collection, docs int64, covered bool) operation {
	want := min(rangeLength, docs)
	how := options.Find().SetBatchSize(rangeLength + 1)
	if covered {
		how.SetProjection(bson.D{{Key: "_id", Value: 0}, {Key: "seq", Value: 1}})
	}
	return func(ctx context.Context, r *rand.Rand) error {
		from := r.Int64N(docs - want + 1)
		return drain(ctx, coll, bson.D{{Key: "seq", Value: bson.D{{Key: "$gte", Value: from}, {Key: "$lt", Value: from + want}}}}, how, want)
	}
}
