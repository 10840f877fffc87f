package ebbtest_test

import (
	"context"
	"errors"
	"testing"
	"time"

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
	s.asksForNote(client, connect(s.MemberURI(s.others(s.Primary())[0])))
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

// asksForNote reads at a member, by a client of it alone, as of a time that the primary has not written at yet: the member has it write a note.
func (s *set) asksForNote(client, secondary *mongo.Client) {
	s.t.Helper()
	var told struct{ OperationTime bson.Timestamp }
	if err := client.Database("admin").RunCommand(s.t.Context(), bson.M{"ping": 1}).Decode(&told); err != nil {
		s.t.Fatal(err)
	}
	next := bson.Timestamp{T: told.OperationTime.T, I: told.OperationTime.I + 1}
	session, err := secondary.StartSession()
	if err != nil {
		s.t.Fatal(err)
	}
	defer session.EndSession(s.t.Context())
	heard, err := bson.Marshal(bson.M{"$clusterTime": bson.M{"clusterTime": next, "signature": bson.M{"hash": bson.Binary{Data: make([]byte, 20)}, "keyId": int64(0)}}})
	if err != nil {
		s.t.Fatal(err)
	}
	if err := session.AdvanceClusterTime(heard); err != nil {
		s.t.Fatal(err)
	}
	find := bson.D{{Key: "find", Value: "c"}, {Key: "readConcern", Value: bson.M{"level": "snapshot", "atClusterTime": next}}}
	ctx, cancel := context.WithTimeout(mongo.NewSessionContext(s.t.Context(), session), time.Minute) // the note of each ten seconds does not come: the clock stands still
	defer cancel()
	if err := secondary.Database("d").RunCommand(ctx, find).Err(); err != nil {
		s.t.Fatal(err)
	}
	notes := bson.M{"op": "n", "o.msg": "noop write for atClusterTime read concern"}
	if n, err := client.Database("local").Collection("oplog.rs").CountDocuments(s.t.Context(), notes); err != nil || n != 1 {
		s.t.Errorf("the primary has written %d notes, %v", n, err)
	}
}
