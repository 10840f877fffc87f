package ebbtest_test

import (
	"context"
	"errors"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"
	"go.mongodb.org/mongo-driver/v2/mongo/writeconcern"
)

// TestSetRequiresAPIVersion: where clients have to say a version of the stable API members go on without: they replicate, and another one
// leads.
func TestSetRequiresAPIVersion(t *testing.T) {
	s := startSet(t)
	connect := func(uri string) *mongo.Client {
		c, err := mongo.Connect(options.Client().ApplyURI(uri).SetServerAPIOptions(options.ServerAPI(options.ServerAPIVersion1)))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = c.Disconnect(context.Background()) })
		return c
	}
	const apiVersionRequired = 498870
	for i := range s.directs {
		admin := connect(s.MemberURI(i)).Database("admin")
		require := func(on bool) {
			if err := admin.RunCommand(context.Background(), bson.D{{Key: "setParameter", Value: 1}, {Key: "requireApiVersion", Value: on}}).Err(); err != nil {
				t.Error(err)
			}
		}
		ping := bson.D{{Key: "ping", Value: 1}}
		if err := s.admin(i, ping); err != nil { // who has no connection yet is refused one
			t.Fatal(err)
		}
		require(true)
		t.Cleanup(func() { require(false) }) // so that the other clients may say that they end
		if err := s.admin(i, ping); codeOf(err) != apiVersionRequired {
			t.Errorf("member %d answers who says no version: %v", i, err)
		}
	}
	client := connect(s.URI())
	coll := client.Database("d").Collection("c", options.Collection().SetWriteConcern(&writeconcern.WriteConcern{W: len(s.directs)}))
	if _, err := coll.InsertOne(t.Context(), bson.M{"_id": 1}); err != nil {
		t.Fatal(err)
	}
	was := s.Primary()
	_ = client.Database("admin").RunCommand(t.Context(), bson.D{{Key: "replSetStepDown", Value: 60}}).Err()
	s.until("another primary", func() error {
		if s.Primary() == was {
			return errors.New("the same member leads")
		}
		return nil
	})
	if _, err := coll.InsertOne(t.Context(), bson.M{"_id": 2}); err != nil {
		t.Error(err)
	}
	if n, err := coll.CountDocuments(t.Context(), bson.M{}); err != nil || n != 2 {
		t.Error(n, err)
	}
}
