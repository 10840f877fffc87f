package main

import (
	"context"
	"errors"
	"math/rand/v2"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
)

// transaction compares transactions of two updates by _id with single updates. Each worker has documents of its own, so that none meets another's.
type transaction struct{}

func (w *transaction) prepare(ctx context.Context, b *bench) error {
	return b.load(ctx, b.db.Collection("docs"), 0, int64(max(b.docs, 2*b.workers)))
}

func (w *transaction) measure(ctx context.Context, b *bench) error {
	coll := b.db.Collection("docs")
	single, err := b.loop().run(ctx, func(ctx context.Context, r *rand.Rand) error {
		return updateNth(ctx, coll, r.Int64N(int64(b.docs)))
	})
	if err != nil {
		return err
	}
	if err := b.tell("-update", single.metrics()); err != nil {
		return err
	}
	seats := newSeats(b)
	two, err := b.loop().run(ctx, func(ctx context.Context, r *rand.Rand) error {
		seat := seats.take()
		defer seats.put(seat)
		return w.twoUpdates(ctx, coll, seat, r)
	})
	if err != nil {
		return err
	}
	out := two.metrics()
	if one := single.metrics()["server_us"]; one > 0 {
		out["server_per_update"] = out["server_us"] / one
	}
	return b.tell("", out)
}

func updateNth(ctx context.Context, coll *mongo.Collection, n int64) error {
	r, err := coll.UpdateByID(ctx, idOf(n), bson.D{{Key: "$inc", Value: bson.D{{Key: "amount", Value: 1}}}})
	if err == nil && r.MatchedCount != 1 {
		return errors.New("an update has not found its document")
	}
	return err
}

// seat is one share of the documents, which one worker has at a time.
type seat struct{ from, size int64 }

type seats chan seat

func newSeats(b *bench) seats {
	all := make(seats, b.workers)
	size := int64(max(b.docs, 2*b.workers) / b.workers)
	for i := range b.workers {
		all <- seat{int64(i) * size, size}
	}
	return all
}

func (s seats) take() seat   { return <-s }
func (s seats) put(one seat) { s <- one }

func (*transaction) twoUpdates(ctx context.Context, coll *mongo.Collection, s seat, r *rand.Rand) error {
	session, err := coll.Database().Client().StartSession()
	if err != nil {
		return err
	}
	defer session.EndSession(ctx)
	if err := session.StartTransaction(); err != nil {
		return err
	}
	in := mongo.NewSessionContext(ctx, session)
	first := r.Int64N(s.size)
	second := (first + 1 + r.Int64N(s.size-1)) % s.size
	if err := errors.Join(updateNth(in, coll, s.from+first), updateNth(in, coll, s.from+second)); err != nil {
		return err
	}
	return session.CommitTransaction(ctx)
}
