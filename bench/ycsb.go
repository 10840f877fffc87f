package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strconv"
	"sync/atomic"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"
)

// A document of YCSB's core workloads has ten fields of a hundred bytes.
const (
	ycsbFields     = 10
	ycsbFieldBytes = 100
	ycsbLongest    = 100 // documents a scan
)

// ycsb is one of the core workloads of the Yahoo! Cloud Serving Benchmark (Cooper et al., SoCC 2010): shares of operations
// over keys of which some are asked for far more than others.
type ycsb struct {
	read, update, insert, scan, modify float64 // shares of 1
	latest                             bool    // what came last is read most
	uniform                            bool

	keys   *zipf
	next   atomic.Int64
	missed atomic.Int64
}

func ycsbRows(s *settings) []row {
	rows := []row{
		{name: "ycsb-a", about: "half reads, half updates", workload: &ycsb{read: 0.5, update: 0.5}},
		{name: "ycsb-b", about: "95 % reads, 5 % updates", workload: &ycsb{read: 0.95, update: 0.05}},
		{name: "ycsb-c", about: "reads", workload: &ycsb{read: 1}},
		{name: "ycsb-d", about: "95 % reads of what came last, 5 % inserts", workload: &ycsb{read: 0.95, insert: 0.05, latest: true}},
		{name: "ycsb-e", about: "95 % scans of up to 100, 5 % inserts", workload: &ycsb{scan: 0.95, insert: 0.05}},
		{name: "ycsb-f", about: "half reads, half reads and updates of what was read", workload: &ycsb{read: 0.5, modify: 0.5}},
	}
	for _, r := range rows {
		r.workload.(*ycsb).uniform = s.uniform
	}
	return rows
}

func (w *ycsb) prepare(ctx context.Context, b *bench) error {
	w.keys = newZipf(int64(b.docs))
	coll, r := b.db.Collection("usertable"), dice(0)
	for from := 0; from < b.docs; from += b.batch {
		var batch []any
		for n := from; n < min(from+b.batch, b.docs); n++ {
			batch = append(batch, ycsbDocument(r, int64(n)))
		}
		if _, err := coll.InsertMany(ctx, batch); err != nil {
			return err
		}
	}
	w.next.Store(int64(b.docs))
	return nil
}

func (w *ycsb) measure(ctx context.Context, b *bench) error {
	w.missed.Store(0)
	coll := b.db.Collection("usertable")
	seen, err := b.loop().run(ctx, func(ctx context.Context, r *rand.Rand) error { return w.operate(ctx, coll, r) })
	if err != nil {
		return err
	}
	out := seen.metrics()
	out["missed"] = float64(w.missed.Load())
	return b.tell("", out)
}

func (w *ycsb) operate(ctx context.Context, coll *mongo.Collection, r *rand.Rand) error {
	left := r.Float64()
	for _, part := range []struct {
		share float64
		do    func(context.Context, *mongo.Collection, *rand.Rand) error
	}{{w.read, w.readOne}, {w.update, w.updateOne}, {w.insert, w.insertOne}, {w.scan, w.scanSome}, {w.modify, w.modifyOne}} {
		if left -= part.share; left < 0 {
			return part.do(ctx, coll, r)
		}
	}
	return w.readOne(ctx, coll, r) // shares need not add up to 1 to the last digit
}

// choose is the number of a document. One that another worker is inserting at the moment may not be there yet.
func (w *ycsb) choose(r *rand.Rand) int64 {
	switch {
	case w.latest:
		return w.next.Load() - 1 - w.keys.next(r)
	case w.uniform:
		return r.Int64N(w.keys.items)
	}
	return int64(scatter(w.keys.next(r)) % uint64(w.keys.items))
}

func ycsbKey(n int64) string { return "user" + strconv.FormatUint(scatter(n), 10) }

func ycsbFilter(n int64) bson.D { return bson.D{{Key: "_id", Value: ycsbKey(n)}} }

func ycsbDocument(r *rand.Rand, n int64) bson.D {
	d := ycsbFilter(n)
	for i := range ycsbFields {
		d = append(d, bson.E{Key: "field" + strconv.Itoa(i), Value: ycsbValue(r)})
	}
	return d
}

// ycsbValue is of printable characters, as YCSB's are.
func ycsbValue(r *rand.Rand) string {
	var b [ycsbFieldBytes]byte
	for i := 0; i < len(b); {
		for v := r.Uint64(); v > 0 && i < len(b); v >>= 6 {
			b[i] = ' ' + byte(v&63)
			i++
		}
	}
	return string(b[:])
}

func (w *ycsb) readOne(ctx context.Context, coll *mongo.Collection, r *rand.Rand) error {
	_, err := coll.FindOne(ctx, ycsbFilter(w.choose(r))).Raw()
	if errors.Is(err, mongo.ErrNoDocuments) && w.latest {
		w.missed.Add(1)
		return nil
	}
	return err
}

func (w *ycsb) updateOne(ctx context.Context, coll *mongo.Collection, r *rand.Rand) error {
	n := w.choose(r)
	set := bson.D{{Key: "$set", Value: bson.D{{Key: "field" + strconv.Itoa(r.IntN(ycsbFields)), Value: ycsbValue(r)}}}}
	res, err := coll.UpdateOne(ctx, ycsbFilter(n), set)
	if err == nil && res.MatchedCount != 1 {
		err = fmt.Errorf("no document %s to update", ycsbKey(n))
	}
	return err
}

func (w *ycsb) insertOne(ctx context.Context, coll *mongo.Collection, r *rand.Rand) error {
	_, err := coll.InsertOne(ctx, ycsbDocument(r, w.next.Add(1)-1))
	return err
}

func (w *ycsb) scanSome(ctx context.Context, coll *mongo.Collection, r *rand.Rand) error {
	n := 1 + r.Int64N(ycsbLongest)
	cursor, err := coll.Find(ctx, bson.D{{Key: "_id", Value: bson.D{{Key: "$gte", Value: ycsbKey(w.choose(r))}}}},
		options.Find().SetSort(bson.D{{Key: "_id", Value: 1}}).SetLimit(n))
	if err != nil {
		return err
	}
	defer cursor.Close(ctx)
	for cursor.Next(ctx) {
	}
	return cursor.Err()
}

func (w *ycsb) modifyOne(ctx context.Context, coll *mongo.Collection, r *rand.Rand) error {
	if err := w.readOne(ctx, coll, r); err != nil {
		return err
	}
	return w.updateOne(ctx, coll, r)
}
