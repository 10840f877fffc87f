package ebb_test

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"

	"github.com/ebbdb/ebb"
)

// TestParkedSortsShareMemory: many cursors that have sorted more than there is memory for live side by side, and each gives
// all of its documents in order.
func TestParkedSortsShareMemory(t *testing.T) {
	const docs, cursors, total = 6000, 12, 12 << 20
	serving(t, ebb.Options{Port: ebb.AnyPort, DBPath: t.TempDir(), MemoryBytes: total}, func(admin *mongo.Database) {
		coll := admin.Client().Database("test").Collection("c")
		pad := strings.Repeat("x", 1000)
		for at := 0; at < docs; at += 1000 {
			var batch []any
			for i := at; i < at+1000; i++ {
				batch = append(batch, bson.D{{Key: "_id", Value: i}, {Key: "n", Value: i * 7919 % docs}, {Key: "pad", Value: pad}})
			}
			if _, err := coll.InsertMany(t.Context(), batch); err != nil {
				t.Fatal(err)
			}
		}
		var open []*mongo.Cursor
		for range cursors {
			c, err := coll.Find(t.Context(), bson.D{}, options.Find().SetSort(bson.D{{Key: "n", Value: 1}}).SetBatchSize(3))
			if err != nil {
				t.Fatal(err)
			}
			open = append(open, c)
		}
		for k, c := range open {
			c.SetBatchSize(2000)
			n := int32(0)
			for ; c.Next(t.Context()); n++ {
				if got := c.Current.Lookup("n").AsInt64(); got != int64(n) {
					t.Fatalf("cursor %d gives %d in place of %d", k, got, n)
				}
			}
			if c.Err() != nil || n != docs {
				t.Fatalf("cursor %d: %d documents, %v", k, n, c.Err())
			}
		}
		status := answer(t, admin, bson.D{{Key: "serverStatus", Value: 1}})
		if peak := status.Lookup("ebbMemory", "peakBytes").AsInt64(); peak < total/4 || peak > total+total/4 {
			t.Errorf("at most %d bytes were in use", peak)
		}
		used := status.Lookup("ebbMemory", "usedBytes").AsInt64() - status.Lookup("ebbMemory", "used", "buffersBytes").AsInt64()
		if used > 1<<20 {
			t.Errorf("%s", fmt.Sprint(status.Lookup("ebbMemory")))
		}
	})
}

// TestUnreadRepliesShareMemory: what a reply takes is asked for while it is put together, so that many clients who do not read
// theirs have no more than there is, and others are served.
func TestUnreadRepliesShareMemory(t *testing.T) {
	const total, clients = 64 << 20, 20
	serving(t, ebb.Options{Port: ebb.AnyPort, DBPath: t.TempDir(), MemoryBytes: total}, func(admin *mongo.Database) {
		coll := admin.Client().Database("test").Collection("c")
		for i := range 12 {
			if _, err := coll.InsertOne(t.Context(), bson.D{{Key: "_id", Value: i}, {Key: "pad", Value: strings.Repeat("x", 1<<20)}}); err != nil {
				t.Fatal(err)
			}
		}
		var all sync.WaitGroup
		for range clients {
			all.Go(func() {
				c, err := coll.Find(t.Context(), bson.D{}, options.Find().SetBatchSize(1000))
				for n := 0; err == nil; n++ {
					if !c.Next(t.Context()) {
						if err = c.Err(); err == nil && n != 12 {
							t.Errorf("%d documents", n)
						}
						break
					}
				}
				var refused mongo.CommandError
				if err != nil && (!errors.As(err, &refused) || refused.Name != "ExceededMemoryLimit") {
					t.Error(err)
				}
			})
		}
		all.Wait()
		memory := answer(t, admin, bson.D{{Key: "serverStatus", Value: 1}}).Lookup("ebbMemory")
		if peak := memory.Document().Lookup("peakBytes").AsInt64(); peak < 12<<20 || peak > total+4<<20 {
			t.Errorf("%s", memory)
		}
	})
}
