package ebbtest_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"
	"go.mongodb.org/mongo-driver/v2/mongo/readconcern"
	"go.mongodb.org/mongo-driver/v2/mongo/readpref"

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

// TestReplicaSetBegins: the set has begun when Start returns, in the clock's time, and cannot be begun again.
func TestReplicaSetBegins(t *testing.T) {
	start := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	srv := ebbtest.Start(t, ebbtest.ReplicaSet(), ebbtest.At(start))
	client, err := mongo.Connect(options.Client().ApplyURI(srv.URI()))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = client.Disconnect(context.Background()) }()
	admin := client.Database("admin")
	var refused mongo.CommandError
	if err := admin.RunCommand(t.Context(), bson.D{{Key: "replSetInitiate", Value: bson.D{}}}).Err(); !errors.As(err, &refused) || refused.Code != 23 {
		t.Error(err)
	}
	var status struct {
		Set     string
		Term    int64
		Members []struct {
			StateStr     string
			ElectionDate time.Time
		}
	}
	if err := admin.RunCommand(t.Context(), bson.D{{Key: "replSetGetStatus", Value: 1}}).Decode(&status); err != nil {
		t.Fatal(err)
	}
	if m := status.Members; status.Term != 1 || len(m) != 1 || m[0].StateStr != "PRIMARY" || !m[0].ElectionDate.Equal(start) || !strings.Contains(srv.URI(), "replicaSet="+status.Set) {
		t.Errorf("%+v", status)
	}
}

// TestReplicaSetTimes: operation times are the clock's, and a causally consistent session reads what another one wrote, also when the clock
// was turned in between.
func TestReplicaSetTimes(t *testing.T) {
	srv := ebbtest.Start(t, ebbtest.ReplicaSet())
	ctx := t.Context()
	var sessions [2]*mongo.Session
	var collections [2]*mongo.Collection
	for i := range sessions {
		client, err := mongo.Connect(options.Client().ApplyURI(srv.URI()).SetReadConcern(readconcern.Majority()))
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = client.Disconnect(context.Background()) }()
		if sessions[i], err = client.StartSession(options.Session().SetCausalConsistency(true)); err != nil {
			t.Fatal(err)
		}
		defer sessions[i].EndSession(context.Background())
		collections[i] = client.Database("test").Collection("c")
	}
	last := bson.Timestamp{}
	for i := range 5 {
		if i%2 == 1 {
			srv.Advance(time.Hour)
		}
		writer, reader := i%2, 1-i%2
		if _, err := collections[writer].InsertOne(mongo.NewSessionContext(ctx, sessions[writer]), bson.D{{Key: "_id", Value: i}}); err != nil {
			t.Fatal(err)
		}
		at := sessions[writer].OperationTime()
		if at == nil || !at.After(last) || int64(at.T) != srv.Clock.Now().Unix() {
			t.Fatalf("operationTime %v after %v, at %v", at, last, srv.Clock.Now())
		}
		last = *at
		if err := errors.Join(sessions[reader].AdvanceOperationTime(at), sessions[reader].AdvanceClusterTime(sessions[writer].ClusterTime())); err != nil {
			t.Fatal(err)
		}
		if err := collections[reader].FindOne(mongo.NewSessionContext(ctx, sessions[reader]), bson.D{{Key: "_id", Value: i}}).Err(); err != nil {
			t.Fatal(err)
		}
	}
}

// TestReplicaSetExpiryIsThePrimarys: while a member has stepped down nothing expires. When it is elected again what was due meanwhile does.
func TestReplicaSetExpiryIsThePrimarys(t *testing.T) {
	srv := ebbtest.Start(t, ebbtest.ReplicaSet())
	client, err := mongo.Connect(options.Client().ApplyURI(srv.URI()).SetReplicaSet("").SetDirect(true).SetReadPreference(readpref.Nearest()))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = client.Disconnect(context.Background()) }()
	ctx, admin, coll := t.Context(), client.Database("admin"), client.Database("test").Collection("c")
	count := func(want int64) {
		t.Helper()
		if n, err := coll.CountDocuments(ctx, bson.D{}); n != want || err != nil {
			t.Fatalf("%d documents, want %d (%v)", n, want, err)
		}
	}
	index := mongo.IndexModel{Keys: bson.D{{Key: "at", Value: 1}}, Options: options.Index().SetExpireAfterSeconds(600)}
	if _, err := coll.Indexes().CreateOne(ctx, index); err != nil {
		t.Fatal(err)
	}
	if _, err := coll.InsertOne(ctx, bson.D{{Key: "at", Value: srv.Clock.Now()}}); err != nil {
		t.Fatal(err)
	}
	if err := admin.RunCommand(ctx, bson.D{{Key: "replSetStepDown", Value: 3600}, {Key: "force", Value: true}}).Err(); err != nil {
		t.Fatal(err)
	}
	srv.Advance(30 * time.Minute)
	srv.SweepNow()
	count(1)
	srv.Advance(time.Hour)
	for elected := false; !elected; { // by itself, beside the clock
		var hello struct{ IsWritablePrimary bool }
		if err := admin.RunCommand(ctx, bson.D{{Key: "hello", Value: 1}}).Decode(&hello); err != nil {
			t.Fatal(err)
		}
		elected = hello.IsWritablePrimary
	}
	srv.Advance(0)
	count(0)
}
