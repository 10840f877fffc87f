package main

import (
	"context"
	"math/rand/v2"
	"sync/atomic"
	"time"

	"go.mongodb.org/mongo-driver/v2/mongo"
)

// insert inserts single documents into a collection that grows from run to run.
type insert struct{ next atomic.Int64 }

func (w *insert) prepare(ctx context.Context, b *bench) error {
	return b.load(ctx, b.db.Collection("single"), w.next.Load(), w.next.Add(1))
}

func (w *insert) measure(ctx context.Context, b *bench) error {
	seen, err := b.loop().run(ctx, insertOne(b.db.Collection("single"), &w.next))
	if err != nil {
		return err
	}
	return b.tell("", seen.metrics())
}

func insertOne(coll *mongo.Collection, next *atomic.Int64) operation {
	return func(ctx context.Context, r *rand.Rand) error {
		_, err := coll.InsertOne(ctx, document(r, next.Add(1)-1, time.Now()))
		return err
	}
}

func insertNth(coll *mongo.Collection, n int64) operation {
	return func(ctx context.Context, r *rand.Rand) error {
		_, err := coll.InsertOne(ctx, document(r, n, time.Now()))
		return err
	}
}
