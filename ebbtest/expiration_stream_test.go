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

// TestExpirationStream (R20, R21, Z23): a change stream tells of each document that expires, by which TTL, and what it was; and it goes on after each.
func TestExpirationStream(t *testing.T) {
	const n = 7
	for field, rule := range map[string]string{"at": "index", "_ts": "_ts"} {
		t.Run(field, func(t *testing.T) {
			srv := ebbtest.Start(t, ebbtest.ReplicaSet())
			client, err := mongo.Connect(options.Client().ApplyURI(srv.URI()))
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = client.Disconnect(context.Background()) }()
			ctx, db := t.Context(), client.Database("test")
			images := bson.E{Key: "changeStreamPreAndPostImages", Value: bson.M{"enabled": true}}
			if err := db.RunCommand(ctx, bson.D{{Key: "create", Value: "c"}, images}).Err(); err != nil {
				t.Fatal(err)
			}
			coll := db.Collection("c")
			index := mongo.IndexModel{Keys: bson.D{{Key: field, Value: 1}}, Options: options.Index().SetExpireAfterSeconds(60)}
			if _, err := coll.Indexes().CreateOne(ctx, index); err != nil {
				t.Fatal(err)
			}
			for i := range n {
				if _, err := coll.InsertOne(ctx, bson.D{{Key: "_id", Value: i}, {Key: "at", Value: srv.Clock.Now()}, {Key: "s", Value: "text"}}); err != nil {
					t.Fatal(err)
				}
			}
			watch := func(after bson.Raw) *mongo.ChangeStream {
				o := options.ChangeStream().SetFullDocumentBeforeChange(options.Required)
				if after != nil {
					o.SetResumeAfter(after)
				}
				stream, err := coll.Watch(ctx, mongo.Pipeline{}, o)
				if err != nil {
					t.Fatal(err)
				}
				return stream
			}
			stream := watch(nil)
			srv.Advance(time.Hour)
			told := map[int32]bool{}
			for range n {
				if !stream.Next(ctx) {
					t.Fatal(stream.Err())
				}
				var event struct {
					OperationType string
					DocumentKey   struct {
						ID int32 `bson:"_id"`
					}
					FullDocumentBeforeChange struct {
						ID int32 `bson:"_id"`
						S  string
					}
					Expiration struct{ Index, Field, Rule string }
				}
				if err := stream.Decode(&event); err != nil {
					t.Fatal(err)
				}
				id, before := event.DocumentKey.ID, event.FullDocumentBeforeChange
				if event.OperationType != "delete" || told[id] || before.ID != id || before.S != "text" {
					t.Errorf("the stream tells %s", stream.Current)
				}
				if e := event.Expiration; e.Index != field+"_1" || e.Field != field || e.Rule != rule {
					t.Errorf("%d has expired by %+v", id, e)
				}
				told[id] = true
				after := stream.ResumeToken()
				_ = stream.Close(ctx)
				stream = watch(after)
			}
			if _, err := coll.InsertOne(ctx, bson.D{{Key: "_id", Value: n}}); err != nil {
				t.Fatal(err)
			}
			if !stream.Next(ctx) || stream.Current.Lookup("operationType").StringValue() != "insert" {
				t.Errorf("the stream goes on with %s, %v", stream.Current, stream.Err())
			}
			if err := stream.Close(ctx); err != nil {
				t.Error(err)
			}
		})
	}
}
