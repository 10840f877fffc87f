package ebbtest_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"

	"github.com/ebbdb/ebb/ebbtest"
)

// expiring is how many documents expire together in TestExpirationEvents: more than are deleted one by one where nobody is told of each.
const expiring = 2000

// TestExpirationEvents: what a change stream gets to know of documents that expire together is what the collection says:
// each, how many, or nothing.
func TestExpirationEvents(t *testing.T) {
	for mode, want := range map[string]string{
		"":          fmt.Sprint("delete ", expiring, ", insert 1"),
		"documents": fmt.Sprint("delete ", expiring, ", insert 1"),
		"summary":   fmt.Sprint("ebbExpired ", expiring, " by d_1 on d, insert 1"),
		"none":      "insert 1",
	} {
		t.Run(mode, func(t *testing.T) {
			srv := ebbtest.Start(t, ebbtest.ReplicaSet())
			client, err := mongo.Connect(options.Client().ApplyURI(srv.URI()))
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = client.Disconnect(context.Background()) }()
			ctx, db := t.Context(), client.Database("test")
			create := bson.D{{Key: "create", Value: "c"}}
			if mode != "" {
				create = append(create, bson.E{Key: "expirationEvents", Value: mode})
			}
			if err := db.RunCommand(ctx, create).Err(); err != nil {
				t.Fatal(err)
			}
			coll := db.Collection("c")
			index := mongo.IndexModel{Keys: bson.D{{Key: "d", Value: 1}}, Options: options.Index().SetExpireAfterSeconds(60)}
			if _, err := coll.Indexes().CreateOne(ctx, index); err != nil {
				t.Fatal(err)
			}
			var docs []any
			for i := range expiring {
				docs = append(docs, bson.D{{Key: "_id", Value: i}, {Key: "d", Value: srv.Clock.Now().Add(time.Duration(i%3) * time.Second)}})
			}
			if _, err := coll.InsertMany(ctx, docs); err != nil {
				t.Fatal(err)
			}
			stream, err := coll.Watch(ctx, mongo.Pipeline{}, options.ChangeStream().SetShowExpandedEvents(true))
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = stream.Close(ctx) }()
			srv.Advance(time.Hour)
			if n, err := coll.CountDocuments(ctx, bson.D{}); n != 0 || err != nil {
				t.Fatal(n, err)
			}
			if _, err := coll.InsertOne(ctx, bson.D{{Key: "_id", Value: -1}}); err != nil {
				t.Fatal(err)
			}
			counts := map[string]int64{}
			for counts["insert"] == 0 {
				if !stream.Next(ctx) {
					t.Fatal(stream.Err())
				}
				var event struct {
					OperationType        string
					OperationDescription struct {
						Index, Field string
						Count        int64
					}
					Expiration struct{ Index, Field, Rule string }
				}
				if err := stream.Decode(&event); err != nil {
					t.Fatal(err)
				}
				kind, n := event.OperationType, int64(1)
				if kind == "ebbExpired" {
					n = event.OperationDescription.Count
				}
				if kind == "delete" && (event.Expiration.Index != "d_1" || event.Expiration.Field != "d" || event.Expiration.Rule != "index") {
					t.Fatalf("%+v", event)
				}
				if kind == "ebbExpired" && (event.OperationDescription.Index != "d_1" || event.OperationDescription.Field != "d") {
					t.Fatalf("%+v", event)
				}
				counts[kind] += n
			}
			var got []string
			for kind, n := range counts {
				text := fmt.Sprint(kind, " ", n)
				if kind == "ebbExpired" {
					text += " by d_1 on d"
				}
				got = append(got, text)
			}
			slices.Sort(got)
			if text := strings.Join(got, ", "); text != want {
				t.Errorf("the stream tells %s, want %s", text, want)
			}
		})
	}
}
