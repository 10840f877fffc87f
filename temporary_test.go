package ebb_test

import (
	"path/filepath"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"

	"github.com/ebbdb/ebb"
)

// TestTemporaryOverRestart: temporary collections are gone after a start, and others are not.
func TestTemporaryOverRestart(t *testing.T) {
	path := filepath.Join(t.TempDir(), "data")
	list := bson.D{{Key: "listCollections", Value: 1}, {Key: "nameOnly", Value: true}}
	names := func(admin *mongo.Database, want ...string) {
		db := admin.Client().Database("test")
		values, err := answer(t, db, list).Lookup("cursor", "firstBatch").Array().Values()
		if err != nil || len(values) != len(want) {
			t.Fatalf("there are %v, %v, want %s", values, err, want)
		}
		for i, v := range values {
			expect(t, bson.Raw(v.Value), want[i], "name")
		}
	}
	serving(t, ebb.Options{Port: ebb.AnyPort, DBPath: path}, func(admin *mongo.Database) {
		db := admin.Client().Database("test")
		for _, name := range []string{"a", "b", "c"} {
			answer(t, db, bson.D{{Key: "create", Value: name}, {Key: "temp", Value: name != "c"}})
		}
		answer(t, admin, bson.D{{Key: "renameCollection", Value: "test.b"}, {Key: "to", Value: "test.d"}})
		names(admin, "a", "c", "d")
	})
	serving(t, ebb.Options{Port: ebb.AnyPort, DBPath: path}, func(admin *mongo.Database) { names(admin, "c", "d") })
}
