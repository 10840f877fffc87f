package ebbtest_test

import (
	"testing"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"

	"github.com/ebbdb/ebb/ebbtest"
)

// A test of sessions that live for an hour, and takes no time.
func TestExampleSessionsExpire(t *testing.T) {
	srv := ebbtest.Start(t, ebbtest.At(time.Date(2026, 11, 23, 12, 0, 0, 0, time.UTC)))
	client, err := mongo.Connect(options.Client().ApplyURI(srv.URI()))
	if err != nil {
		t.Fatal(err)
	}
	defer client.Disconnect(t.Context())
	sessions := client.Database("app").Collection("sessions")
	index := mongo.IndexModel{Keys: bson.D{{Key: "createdAt", Value: 1}}, Options: options.Index().SetExpireAfterSeconds(3600)}
	if _, err := sessions.Indexes().CreateOne(t.Context(), index); err != nil {
		t.Fatal(err)
	}
	if _, err := sessions.InsertOne(t.Context(), bson.D{{Key: "createdAt", Value: srv.Clock.Now()}}); err != nil {
		t.Fatal(err)
	}
	for _, step := range []struct {
		wait time.Duration
		left int64
	}{{59 * time.Minute, 1}, {2 * time.Minute, 0}} {
		srv.Advance(step.wait)
		if n, err := sessions.CountDocuments(t.Context(), bson.D{}); err != nil || n != step.left {
			t.Errorf("at %s: %d sessions, %v; want %d", srv.Clock.Now(), n, err, step.left)
		}
	}
}
