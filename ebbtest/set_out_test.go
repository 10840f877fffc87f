package ebbtest_test

import (
	"errors"
	"fmt"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
)

// TestSetOutAtSecondary: a pipeline that writes what it gives may be sent to a secondary, as drivers do where the read preference lets secondaries
// answer. The primary runs it, and the secondary has what was written when it says so.
func TestSetOutAtSecondary(t *testing.T) {
	s := startSet(t)
	ctx := t.Context()
	c := s.client.Database("d").Collection("c")
	if _, err := c.InsertMany(ctx, []any{bson.M{"_id": 1, "n": 1}, bson.M{"_id": 2, "n": 2}}); err != nil {
		t.Fatal(err)
	}
	at := s.directs[s.others(s.Primary())[0]].Database("d")
	s.until("it is a secondary that knows its primary", func() error {
		var r struct {
			Secondary bool
			Primary   string
		}
		err := at.RunCommand(ctx, bson.M{"hello": 1}).Decode(&r)
		if err == nil && (!r.Secondary || r.Primary == "") {
			err = fmt.Errorf("%+v", r)
		}
		return err
	})
	match := bson.D{{Key: "$match", Value: bson.M{"n": 2}}}
	for round, last := range []bson.D{{{Key: "$out", Value: "out"}}, {{Key: "$merge", Value: "merged"}}, {{Key: "$out", Value: "out"}}} {
		command := bson.D{{Key: "aggregate", Value: "c"}, {Key: "pipeline", Value: bson.A{match, last}}, {Key: "cursor", Value: bson.M{"batchSize": round}},
			{Key: "$readPreference", Value: bson.M{"mode": "secondary"}}}
		var r struct {
			Cursor struct {
				ID         int64
				NS         string
				FirstBatch bson.A
			}
		}
		s.until("it runs", func() error { return at.RunCommand(ctx, command).Decode(&r) }) // again where the primary has just changed
		if r.Cursor.ID != 0 || len(r.Cursor.FirstBatch) > 0 || r.Cursor.NS != "d.c" {
			t.Errorf("%v: %+v", last, r)
		}
		name := last[0].Value.(string)
		if n, err := at.Collection(name).CountDocuments(ctx, bson.D{}); err != nil || n != 1 {
			t.Errorf("after %v the secondary has %d documents, %v", last, n, err)
		}
	}
	cursor, err := at.Collection("c").Aggregate(ctx, bson.A{bson.D{{Key: "$project", Value: bson.M{"n": bson.M{"$nothing": 1}}}}, bson.D{{Key: "$out", Value: "out"}}})
	var e mongo.CommandError
	if err == nil {
		_ = cursor.Close(ctx)
	}
	const invalidProject = 31325
	if !errors.As(err, &e) || e.Code != invalidProject {
		t.Errorf("an operator that there is not: %v", err)
	}
}
