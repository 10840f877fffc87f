package ebb_test

import (
	"os"
	"strings"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"

	"github.com/ebbdb/ebb"
)

// TestMeasuredHost: what is measured tells which server it is of, by the machine's name and the port.
func TestMeasuredHost(t *testing.T) {
	s := serve(t, ebb.Options{Engine: ebb.InMemory, Port: ebb.AnyPort})
	c, err := mongo.Connect(options.Client().ApplyURI("mongodb://" + s.Addr() + "/?directConnection=true"))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = c.Disconnect(t.Context()) }()
	if _, err := c.Database("d").Collection("c").InsertOne(t.Context(), bson.M{}); err != nil {
		t.Fatal(err)
	}
	name, err := os.Hostname()
	if err != nil {
		t.Fatal(err)
	}
	want := name + s.Addr()[strings.LastIndex(s.Addr(), ":"):]
	for _, stage := range []string{"$indexStats", "$collStats", "$currentOp"} {
		db, of := c.Database("d"), any("c")
		if stage == "$currentOp" {
			db, of = c.Database("admin"), 1
		}
		var r struct {
			Cursor struct{ FirstBatch []struct{ Host string } }
		}
		command := bson.D{{Key: "aggregate", Value: of}, {Key: "pipeline", Value: bson.A{bson.M{stage: bson.M{}}}}, {Key: "cursor", Value: bson.M{}}}
		if err := db.RunCommand(t.Context(), command).Decode(&r); err != nil {
			t.Fatal(stage, err)
		}
		if len(r.Cursor.FirstBatch) == 0 || r.Cursor.FirstBatch[0].Host != want {
			t.Errorf("%s: %v, and not %s", stage, r.Cursor.FirstBatch, want)
		}
	}
}
