package main

import (
	"context"
	"fmt"
	"math/rand/v2"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"
)

// find reads from a loaded collection, by _id where it has no op of its own.
type find struct {
	op  func(coll *mongo.Collection, docs int64) operation
	few bool // as many workers as a heavy operation can use
}

// fewWorkers do what keeps a processor busy for long.
const fewWorkers = 2

func (*find) prepare(ctx context.Context, b *bench) error {
	return b.load(ctx, b.db.Collection("docs"), 0, int64(b.docs))
}

func (w *find) measure(ctx context.Context, b *bench) error {
	op, l := w.op, b.loop()
	if op == nil {
		op = findByID
	}
	if w.few {
		l.workers = min(l.workers, fewWorkers)
	}
	seen, err := l.run(ctx, op(b.db.Collection("docs"), int64(b.docs)))
	if err != nil {
		return err
	}
	return b.tell("", seen.metrics())
}

func findByID(coll *mongo.Collection, docs int64) operation {
	return func(ctx context.Context, r *rand.Rand) error {
		_, err := coll.FindOne(ctx, bson.D{{Key: "_id", Value: idOf(r.Int64N(docs))}}).Raw()
		return err
	}
}

// largest sorts without an index, and keeps few.
func largest(coll *mongo.Collection, docs int64) operation {
	want := min(rangeLength, docs)
	by := options.Find().SetSort(bson.D{{Key: "amount", Value: -1}}).SetLimit(want)
	return func(ctx context.Context, _ *rand.Rand) error { return drain(ctx, coll, bson.D{}, by, want) }
}

// drain reads a find to its end, and looks that it has as many documents as there must be.
func drain(ctx context.Context, coll *mongo.Collection, filter bson.D, how *options.FindOptionsBuilder, want int64) error {
	cursor, err := coll.Find(ctx, filter, how)
	if err != nil {
		return err
	}
	defer cursor.Close(ctx)
	var n int64
	for cursor.Next(ctx) {
		n++
	}
	if n != want && cursor.Err() == nil {
		return fmt.Errorf("find %v returned %d documents, and there are %d", filter, n, want)
	}
	return cursor.Err()
}
