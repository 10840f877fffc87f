package ebbtest_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"

	"github.com/ebbdb/ebb/ebbtest"
)

// TestReplicaSet: a server that is a replica set of one has transactions, and tells a change stream what has expired and why.
func TestReplicaSet(t *testing.T) {
	srv := ebbtest.Start(t, ebbtest.ReplicaSet())
	client, err := mongo.Connect(options.Client().ApplyURI(srv.URI()))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = client.Disconnect(context.Background()) }()
	ctx, db := t.Context(), client.Database("test")
	sessions, audit := db.Collection("sessions"), db.Collection("audit")
	index := mongo.IndexModel{Keys: bson.D{{Key: "at", Value: 1}}, Options: options.Index().SetExpireAfterSeconds(3600)}
	if _, err := sessions.Indexes().CreateOne(ctx, index); err != nil {
		t.Fatal(err)
	}
	stream, err := sessions.Watch(ctx, mongo.Pipeline{})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = stream.Close(ctx) }()

	refused := errors.New("refused")
	for _, want := range []error{refused, nil} {
		session, err := client.StartSession()
		if err != nil {
			t.Fatal(err)
		}
		_, err = session.WithTransaction(ctx, func(ctx context.Context) (any, error) {
			if _, err := sessions.InsertOne(ctx, bson.D{{Key: "_id", Value: 1}, {Key: "at", Value: srv.Clock.Now()}}); err != nil {
				return nil, err
			}
			_, err := audit.InsertOne(ctx, bson.D{{Key: "began", Value: 1}})
			return nil, errors.Join(err, want)
		})
		if !errors.Is(err, want) {
			t.Fatal(err)
		}
		session.EndSession(ctx)
	}
	for _, coll := range []*mongo.Collection{sessions, audit} {
		if n, err := coll.CountDocuments(ctx, bson.D{}); n != 1 || err != nil {
			t.Errorf("%s has %d documents, %v", coll.Name(), n, err)
		}
	}
	srv.Advance(2 * time.Hour)
	var events []string
	for range 2 {
		if !stream.Next(ctx) {
			t.Fatal(stream.Err())
		}
		var event struct {
			OperationType string
			Expiration    struct{ Index, Field, Rule string }
		}
		if err := stream.Decode(&event); err != nil {
			t.Fatal(err)
		}
		events = append(events, event.OperationType+" "+event.Expiration.Index)
	}
	if events[0] != "insert " || events[1] != "delete at_1" {
		t.Error(events)
	}
}

// TestBlockedWritesExpire: what is due is deleted while the writes of users are blocked.
func TestBlockedWritesExpire(t *testing.T) {
	srv := ebbtest.Start(t, ebbtest.ReplicaSet())
	client, err := mongo.Connect(options.Client().ApplyURI(srv.URI()))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = client.Disconnect(context.Background()) }()
	ctx, sessions := t.Context(), client.Database("test").Collection("sessions")
	index := mongo.IndexModel{Keys: bson.D{{Key: "at", Value: 1}}, Options: options.Index().SetExpireAfterSeconds(3600)}
	if _, err := sessions.Indexes().CreateOne(ctx, index); err != nil {
		t.Fatal(err)
	}
	if _, err := sessions.InsertOne(ctx, bson.D{{Key: "at", Value: srv.Clock.Now()}}); err != nil {
		t.Fatal(err)
	}
	block := bson.D{{Key: "setUserWriteBlockMode", Value: 1}, {Key: "global", Value: true}}
	if err := client.Database("admin").RunCommand(ctx, block).Err(); err != nil {
		t.Fatal(err)
	}
	if _, err := sessions.InsertOne(ctx, bson.D{}); err == nil {
		t.Error("a user has written")
	}
	srv.Advance(2 * time.Hour)
	if n, err := sessions.EstimatedDocumentCount(ctx); n != 0 || err != nil {
		t.Errorf("%d documents, %v", n, err)
	}
}
