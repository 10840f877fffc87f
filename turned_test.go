package ebb_test

import (
	"errors"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	driver "go.mongodb.org/mongo-driver/v2/mongo/options"

	"github.com/ebbdb/ebb"
)

// TestTurnClock: where test commands are enabled a client turns the server's clock, and what expires by it is gone; others find no such command.
func TestTurnClock(t *testing.T) {
	options := ebb.Options{Port: ebb.AnyPort, Engine: ebb.InMemory, Parameters: map[string]string{"enableTestCommands": "1"}}
	turn := func(millis any) bson.D {
		return bson.D{{Key: "ebbTurnClock", Value: 1}, {Key: "offsetMillis", Value: millis}}
	}
	serving(t, options, func(admin *mongo.Database) {
		sessions := admin.Client().Database("d").Collection("sessions")
		if _, err := sessions.Indexes().CreateOne(t.Context(), mongo.IndexModel{Keys: bson.D{{Key: "_ts", Value: 1}}, Options: driver.Index().SetExpireAfterSeconds(3600)}); err != nil {
			t.Fatal(err)
		}
		if _, err := sessions.InsertOne(t.Context(), bson.D{{Key: "_id", Value: 1}}); err != nil {
			t.Fatal(err)
		}
		for _, step := range []struct{ millis, found int64 }{{3_500_000, 1}, {0, 1}, {3_600_000, 0}} {
			answer(t, admin, turn(step.millis))
			if n, err := sessions.CountDocuments(t.Context(), bson.D{}); err != nil || n != step.found {
				t.Errorf("off by %d ms: %d documents, %v", step.millis, n, err)
			}
		}
		// What takes time is measured by how long the clock has run: an hour back nothing has taken less than nothing.
		answer(t, admin, turn(-3_600_000))
		var status struct {
			UptimeMillis int64
			GlobalLock   struct{ TotalTime int64 }
			OpLatencies  struct{ Commands struct{ Latency int64 } }
		}
		if err := admin.RunCommand(t.Context(), bson.D{{Key: "serverStatus", Value: 1}}).Decode(&status); err != nil || min(status.UptimeMillis, status.GlobalLock.TotalTime, status.OpLatencies.Commands.Latency) < 0 {
			t.Errorf("the server has run for %+v, %v", status, err)
		}
		for _, wrong := range []any{"1", int64(1e13), nil} {
			if err := admin.RunCommand(t.Context(), turn(wrong)).Err(); err == nil {
				t.Errorf("turned by %v", wrong)
			}
		}
	})
	options.Parameters = nil
	serving(t, options, func(admin *mongo.Database) {
		var refused mongo.ServerError
		if err := admin.RunCommand(t.Context(), turn(1)).Err(); !errors.As(err, &refused) || !refused.HasErrorCode(59) {
			t.Error(err)
		}
	})
}
