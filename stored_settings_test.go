package ebb_test

import (
	"context"
	"path/filepath"
	"strings"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"

	"github.com/ebbdb/ebb"
)

// TestKeptOverRestart: the feature compatibility version, the parameters of the cluster and what is set for queries are after
// a start what they were before.
func TestKeptOverRestart(t *testing.T) {
	path := filepath.Join(t.TempDir(), "data")
	limit := bson.D{{Key: "getClusterParameter", Value: "defaultMaxTimeMS"}}
	version := bson.D{{Key: "getParameter", Value: 1}, {Key: "featureCompatibilityVersion", Value: 1}}
	settings := bson.D{{Key: "aggregate", Value: 1}, {Key: "cursor", Value: bson.D{}},
		{Key: "pipeline", Value: bson.A{bson.D{{Key: "$querySettings", Value: bson.D{{Key: "showDebugQueryShape", Value: true}}}}}}}
	queries := []bson.D{
		{{Key: "find", Value: "c"}, {Key: "filter", Value: bson.D{{Key: "a", Value: 1}}}, {Key: "$db", Value: "test"}},
		{{Key: "distinct", Value: "c"}, {Key: "key", Value: "a"}, {Key: "query", Value: bson.D{{Key: "a", Value: 1}}}, {Key: "$db", Value: "test"}},
		{{Key: "aggregate", Value: "c"}, {Key: "pipeline", Value: bson.A{bson.D{{Key: "$match", Value: bson.D{{Key: "a", Value: 1}}}}}}, {Key: "$db", Value: "test"}},
	}
	var shown string
	same := func(admin *mongo.Database) {
		expect(t, answer(t, admin, version), "8.0", "featureCompatibilityVersion", "version")
		expect(t, answer(t, admin, limit), int64(5000), "clusterParameters", "0", "readOperations")
		var stored bson.M
		if err := admin.Collection("system.version").FindOne(t.Context(), bson.D{{Key: "_id", Value: "featureCompatibilityVersion"}}).Decode(&stored); err != nil || stored["version"] != "8.0" {
			t.Errorf("admin.system.version has %v, %v", stored, err)
		}
		if n, err := admin.Client().Database("config").Collection("clusterParameters").CountDocuments(t.Context(), bson.D{}); err != nil || n != 2 {
			t.Errorf("config.clusterParameters has %d documents, %v", n, err)
		}
		now := answer(t, admin, settings).Lookup("cursor", "firstBatch").String()
		if shown == "" {
			shown = now
		}
		if now != shown || strings.Count(now, "debugQueryShape") != len(queries) {
			t.Errorf("the query settings are %s, and were %s", now, shown)
		}
		err := admin.Client().Database("test").Collection("c").FindOne(t.Context(), bson.D{{Key: "a", Value: 7}}).Err()
		if err == nil || !strings.Contains(err.Error(), "rejected") {
			t.Errorf("the rejected query answers %v", err)
		}
	}
	before := func(admin *mongo.Database) {
		for _, asked := range queries {
			answer(t, admin, bson.D{{Key: "setQuerySettings", Value: asked}, {Key: "settings", Value: bson.D{{Key: "reject", Value: true}}}})
		}
		answer(t, admin, bson.D{{Key: "setFeatureCompatibilityVersion", Value: "8.0"}, {Key: "confirm", Value: true}})
		answer(t, admin, bson.D{{Key: "setClusterParameter", Value: bson.D{{Key: "defaultMaxTimeMS", Value: bson.D{{Key: "readOperations", Value: 5000}}}}}})
		same(admin)
	}
	undo := func(admin *mongo.Database) {
		same(admin)
		for _, asked := range queries {
			answer(t, admin, bson.D{{Key: "removeQuerySettings", Value: asked}})
		}
		answer(t, admin, bson.D{{Key: "setFeatureCompatibilityVersion", Value: "8.2"}, {Key: "confirm", Value: true}})
		answer(t, admin, bson.D{{Key: "setClusterParameter", Value: bson.D{{Key: "defaultMaxTimeMS", Value: bson.D{}}}}})
	}
	after := func(admin *mongo.Database) {
		expect(t, answer(t, admin, version), "8.2", "featureCompatibilityVersion", "version")
		expect(t, answer(t, admin, limit), int64(0), "clusterParameters", "0", "readOperations")
		if reply := answer(t, admin, settings); reply.Lookup("cursor", "firstBatch", "0").Type != 0 {
			t.Errorf("query settings are still there: %s", reply)
		}
	}
	for _, use := range []func(*mongo.Database){before, same, undo, after} {
		serving(t, ebb.Options{Port: ebb.AnyPort, DBPath: path}, use)
	}
}

// serving calls use with the database admin of a server, and ends the server.
func serving(t *testing.T, o ebb.Options, use func(admin *mongo.Database)) {
	t.Helper()
	s, err := ebb.Open(o)
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	served := make(chan error, 1)
	go func() { served <- s.Serve(ctx) }()
	defer func() {
		stop()
		if err := <-served; err != nil {
			t.Error(err)
			return // operations still use the data
		}
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	}()
	client, err := mongo.Connect(options.Client().ApplyURI("mongodb://" + s.Addr() + "/?directConnection=true"))
	if err != nil {
		t.Error(err)
		return
	}
	use(client.Database("admin"))
	if err := client.Disconnect(context.Background()); err != nil {
		t.Error(err)
	}
}

func answer(t *testing.T, db *mongo.Database, command bson.D) bson.Raw {
	t.Helper()
	reply, err := db.RunCommand(context.Background(), command).Raw()
	if err != nil {
		t.Errorf("%v: %v", command, err)
	}
	return reply
}

func expect(t *testing.T, reply bson.Raw, want any, path ...string) {
	t.Helper()
	var got any
	if err := reply.Lookup(path...).Unmarshal(&got); err != nil {
		t.Errorf("%v: %v in %s", path, err, reply)
	} else if got != want {
		t.Errorf("%v is %v, not %v", path, got, want)
	}
}
