package ebbtest_test

import (
	"context"
	"testing"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"

	"github.com/ebbdb/ebb/ebbtest"
)

// TestExpiringCursor reads documents in the order of their deadlines through a driver, a few at a time, while the clock moves, documents are written, and a
// sweep deletes what has been read: each comes once, in order.
func TestExpiringCursor(t *testing.T) {
	srv := ebbtest.Start(t, ebbtest.At(zero))
	client, err := mongo.Connect(options.Client().ApplyURI(srv.URI()))
	if err != nil {
		t.Fatal(err)
	}
	defer client.Disconnect(context.Background())
	db := client.Database("test")
	now := zero
	advance := func(d time.Duration) {
		srv.Advance(d)
		now = now.Add(d)
	}
	run := func(command bson.D) {
		t.Helper()
		if err := db.RunCommand(t.Context(), command).Err(); err != nil {
			t.Fatal(err)
		}
	}
	for _, c := range []struct {
		coll  string
		index bson.D
	}{
		{"ts", bson.D{{Key: "key", Value: bson.D{{Key: "_ts", Value: 1}}}, {Key: "name", Value: "ts"}, {Key: "expireAfterSeconds", Value: 100_000}}},
		{"date", bson.D{{Key: "key", Value: bson.D{{Key: "d", Value: 1}}}, {Key: "name", Value: "d"}, {Key: "expireAfterSeconds", Value: 0}}},
		{"back", bson.D{{Key: "key", Value: bson.D{{Key: "d", Value: -1}}}, {Key: "name", Value: "d"}, {Key: "expireAfterSeconds", Value: 0}}},
	} {
		run(bson.D{{Key: "createIndexes", Value: c.coll}, {Key: "indexes", Value: bson.A{c.index}}})
		const n = 500
		docs := make(bson.A, n)
		for i := range docs { // in fives of one deadline
			at := (i*7919%n)/5 + 60
			docs[i] = bson.D{{Key: "_id", Value: i}, {Key: "ttl", Value: at}, {Key: "d", Value: now.Add(time.Duration(at) * time.Second)}}
		}
		run(bson.D{{Key: "insert", Value: c.coll}, {Key: "documents", Value: docs}})
		cursor, err := db.Collection(c.coll).Aggregate(t.Context(), bson.A{bson.D{{Key: "$ebbTTL", Value: bson.D{}}}}, options.Aggregate().SetBatchSize(3))
		if err != nil {
			t.Fatal(err)
		}
		met, last := map[int32]bool{}, time.Time{}
		for cursor.Next(t.Context()) {
			var got struct {
				Deadline time.Time
				Document struct {
					ID int32 `bson:"_id"`
				}
			}
			if err := cursor.Decode(&got); err != nil {
				t.Fatal(err)
			}
			if got.Deadline.Before(last) || met[got.Document.ID] {
				t.Fatalf("%s: %d at %s comes twice, or after %s", c.coll, got.Document.ID, got.Deadline, last)
			}
			last, met[got.Document.ID] = got.Deadline, true
			if len(met)%50 == 0 { // what comes next lies behind
				advance(time.Second)
				run(bson.D{{Key: "insert", Value: c.coll}, {Key: "documents", Value: bson.A{bson.D{{Key: "_id", Value: 1_000_000 + len(met)}}}}})
			}
			if len(met) == 300 { // what has been read goes
				advance(last.Sub(now))
			}
		}
		if err := cursor.Err(); err != nil {
			t.Fatal(err)
		}
		for i := range int32(n) {
			if !met[i] {
				t.Errorf("%s: %d has not come", c.coll, i)
			}
		}
	}
}
