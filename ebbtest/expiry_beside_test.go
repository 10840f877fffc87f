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

// TestExpiryBesideTransactions: what expires goes on time beside open transactions, but for what they have written, which goes when they have
// ended, and does not wait for the next look at everything. They see what they saw, cursors included, and only who writes what has
// gone is refused.
func TestExpiryBesideTransactions(t *testing.T) {
	for _, mode := range []string{"documents", "summary", "none"} {
		t.Run(mode, func(t *testing.T) {
			srv := ebbtest.Start(t, ebbtest.ReplicaSet())
			client, err := mongo.Connect(options.Client().ApplyURI(srv.URI()))
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = client.Disconnect(context.Background()) }()
			ctx, db := t.Context(), client.Database("test")
			if err := db.RunCommand(ctx, bson.D{{Key: "create", Value: "c"}, {Key: "expirationEvents", Value: mode}}).Err(); err != nil {
				t.Fatal(err)
			}
			coll := db.Collection("c")
			index := mongo.IndexModel{Keys: bson.D{{Key: "d", Value: 1}}, Options: options.Index().SetExpireAfterSeconds(10)}
			if _, err := coll.Indexes().CreateOne(ctx, index); err != nil {
				t.Fatal(err)
			}
			docs := []any{bson.D{{Key: "_id", Value: -1}, {Key: "d", Value: srv.Clock.Now().Add(time.Hour)}}}
			for i := range expiring {
				docs = append(docs, bson.D{{Key: "_id", Value: i}, {Key: "d", Value: srv.Clock.Now()}})
			}
			if _, err := coll.InsertMany(ctx, docs); err != nil {
				t.Fatal(err)
			}
			begin := func() (context.Context, *mongo.Session) {
				session, err := client.StartSession()
				if err == nil {
					err = session.StartTransaction()
				}
				if err != nil {
					t.Fatal(err)
				}
				t.Cleanup(func() { session.EndSession(context.Background()) })
				return mongo.NewSessionContext(ctx, session), session
			}
			set := func(ctx context.Context, id int, field string, value any) error {
				done, err := coll.UpdateByID(ctx, id, bson.D{{Key: "$set", Value: bson.D{{Key: field, Value: value}}}})
				if err == nil && done.MatchedCount != 1 {
					err = errors.New("nothing was found")
				}
				return err
			}
			must := func(err error) {
				t.Helper()
				if err != nil {
					t.Fatal(err)
				}
			}
			wantStored := func(want int64) {
				t.Helper()
				if n, err := coll.CountDocuments(ctx, bson.D{}); n != want || err != nil {
					t.Fatalf("%d documents are left, want %d, %v", n, want, err)
				}
			}
			toCommit, committing := begin()
			toAbort, aborting := begin()
			toRead, _ := begin()
			must(set(toCommit, 5, "x", 1))
			must(set(toCommit, 6, "d", srv.Clock.Now().Add(time.Hour)))
			must(set(toAbort, 7, "x", 1))
			cursor, err := coll.Find(toRead, bson.D{}, options.Find().SetBatchSize(100))
			must(err)
			for range 10 {
				if !cursor.Next(toRead) {
					t.Fatal(cursor.Err())
				}
			}
			srv.Advance(15 * time.Second)
			wantStored(4) // 5, 6, 7 and what lives on
			seen := 10
			for cursor.Next(toRead) {
				seen++
			}
			if err := cursor.Err(); seen != expiring+1 || err != nil {
				t.Errorf("the cursor has given %d documents, want %d, %v", seen, expiring+1, err)
			}
			if n, err := coll.CountDocuments(toRead, bson.D{}); n != expiring+1 || err != nil {
				t.Errorf("who only reads counts %d, %v", n, err)
			}
			var refused mongo.ServerError
			if err := set(toRead, 9, "x", 1); !errors.As(err, &refused) || !refused.HasErrorCode(112) || !refused.HasErrorLabel("TransientTransactionError") {
				t.Errorf("writing what has gone: %v", err)
			}
			must(aborting.AbortTransaction(toAbort))
			srv.Advance(2 * time.Second)
			wantStored(3)
			must(set(toCommit, 5, "x", 2))
			must(committing.CommitTransaction(toCommit))
			srv.Advance(2 * time.Second)
			wantStored(2)
			must(set(ctx, 6, "x", 1))
		})
	}
}
