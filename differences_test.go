package ebb_test

import (
	"context"
	"path/filepath"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"

	"github.com/ebbdb/ebb"
)

// TestUntilRestart: the feature compatibility version and the parameters of the cluster are those of a new server after
// each start, and nothing is set for queries. docs/differences.md says so.
func TestUntilRestart(t *testing.T) {
	path := filepath.Join(t.TempDir(), "data")
	limit := bson.D{{Key: "getClusterParameter", Value: "defaultMaxTimeMS"}}
	version := bson.D{{Key: "getParameter", Value: 1}, {Key: "featureCompatibilityVersion", Value: 1}}
	settings := bson.D{{Key: "aggregate", Value: 1}, {Key: "pipeline", Value: bson.A{bson.D{{Key: "$querySettings", Value: bson.D{}}}, bson.D{{Key: "$count", Value: "n"}}}}, {Key: "cursor", Value: bson.D{}}}
	before := func(admin *mongo.Database) {
		answer(t, admin, bson.D{{Key: "setQuerySettings", Value: bson.D{{Key: "find", Value: "c"}, {Key: "$db", Value: "test"}}}, {Key: "settings", Value: bson.D{{Key: "reject", Value: true}}}})
		expect(t, answer(t, admin, settings), int32(1), "cursor", "firstBatch", "0", "n")
		answer(t, admin, bson.D{{Key: "setFeatureCompatibilityVersion", Value: "8.0"}, {Key: "confirm", Value: true}})
		answer(t, admin, bson.D{{Key: "setClusterParameter", Value: bson.D{{Key: "defaultMaxTimeMS", Value: bson.D{{Key: "readOperations", Value: 5000}}}}}})
		expect(t, answer(t, admin, version), "8.0", "featureCompatibilityVersion", "version")
		expect(t, answer(t, admin, limit), int64(5000), "clusterParameters", "0", "readOperations")
	}
	after := func(admin *mongo.Database) {
		if reply := answer(t, admin, settings); reply.Lookup("cursor", "firstBatch", "0").Type != 0 {
			t.Errorf("query settings are still there: %s", reply)
		}
		expect(t, answer(t, admin, version), "8.2", "featureCompatibilityVersion", "version")
		expect(t, answer(t, admin, limit), int64(0), "clusterParameters", "0", "readOperations")
	}
	for _, use := range []func(*mongo.Database){before, after} {
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
