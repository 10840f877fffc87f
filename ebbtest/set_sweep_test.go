package ebbtest_test

import (
	"strings"
	"testing"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"
)

// TestSetSweepIsSmall: where nobody is told of each document, thousands that expire at one moment are a few commits and some kilobytes of the log, however
// many they are, on each member. Where everybody is told they cannot be.
func TestSetSweepIsSmall(t *testing.T) {
	s := startSet(t)
	const documents = 10_000
	const mostCommits, mostBytes = 20, 400 << 10
	for _, mode := range []string{"none", "summary", "documents"} {
		t.Run(mode, func(t *testing.T) {
			db := s.client.Database("d")
			if err := db.RunCommand(t.Context(), bson.D{{Key: "create", Value: mode}, {Key: "expirationEvents", Value: mode}}).Err(); err != nil {
				t.Fatal(err)
			}
			if _, err := db.Collection(mode).Indexes().CreateOne(t.Context(), mongo.IndexModel{Keys: bson.M{"at": 1}, Options: options.Index().SetExpireAfterSeconds(60)}); err != nil {
				t.Fatal(err)
			}
			var docs []any
			for i := range documents {
				docs = append(docs, bson.M{"_id": i, "at": s.Clock.Now(), "text": strings.Repeat("x", 100)})
			}
			if _, err := db.Collection(mode).InsertMany(t.Context(), docs); err != nil {
				t.Fatal(err)
			}
			s.Settle()
			p := s.Primary()
			commits, sent := s.Told(p)
			s.Advance(time.Hour)
			nowCommits, nowSent := s.Told(p)
			commits, sent = nowCommits-commits, nowSent-sent
			t.Logf("%d documents have expired by %d commits; all members have sent %d bytes", documents, commits, sent)
			for i := range s.directs {
				s.has(i, mode, 0, 0)
			}
			if isSmall := commits <= mostCommits && sent <= mostBytes; isSmall != (mode != "documents") {
				t.Errorf("%d commits and %d bytes", commits, sent)
			}
		})
	}
}
