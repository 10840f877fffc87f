package ebb

import (
	"context"
	"strconv"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"
)

// TestReplicaSetRestarts: a member that begins a set by itself is the same member when it is started again, in a later term, and its
// clock goes on.
func TestReplicaSetRestarts(t *testing.T) {
	o := Options{Port: AnyPort, DBPath: t.TempDir(), ReplicaSet: &ReplicaSet{Name: "rs", Initiate: true, OplogBytes: 1 << 30}}
	var ids, times []string
	for run := range 3 {
		s, err := Open(o)
		if err != nil {
			t.Fatal(err)
		}
		ctx, stop := context.WithCancel(t.Context())
		served := make(chan error, 1)
		go func() { served <- s.Serve(ctx) }()
		client, err := mongo.Connect(options.Client().ApplyURI("mongodb://" + s.Addr() + "/?directConnection=true"))
		if err != nil {
			t.Fatal(err)
		}
		var status struct {
			Set     string
			MyState int
			Term    int64
			Optimes struct{ AppliedOpTime struct{ TS bson.Timestamp } }
		}
		if err := client.Database("admin").RunCommand(ctx, bson.D{{Key: "replSetGetStatus", Value: 1}}).Decode(&status); err != nil {
			t.Fatal(err)
		}
		if status.Set != "rs" || status.MyState != 1 || status.Term != int64(run+1) {
			t.Errorf("run %d: %+v", run, status)
		}
		var conf struct {
			Config struct {
				Settings struct {
					ReplicaSetID bson.ObjectID `bson:"replicaSetId"`
				}
			}
		}
		if err := client.Database("admin").RunCommand(ctx, bson.D{{Key: "replSetGetConfig", Value: 1}}).Decode(&conf); err != nil {
			t.Fatal(err)
		}
		ids = append(ids, conf.Config.Settings.ReplicaSetID.Hex())
		ts := status.Optimes.AppliedOpTime.TS
		times = append(times, strconv.FormatUint(uint64(ts.T)<<32|uint64(ts.I), 10))
		if _, err := client.Database("test").Collection("c").InsertOne(ctx, bson.D{{Key: "_id", Value: run}}); err != nil {
			t.Fatal(err)
		}
		if err := client.Disconnect(ctx); err != nil {
			t.Error(err)
		}
		stop()
		if err := <-served; err != nil {
			t.Fatal(err)
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
	}
	if ids[0] != ids[1] || ids[1] != ids[2] || times[0] >= times[1] || times[1] >= times[2] {
		t.Error(ids, times)
	}
}

// TestIsSelf: an address of a configuration is the server's when the port is its own and the name is one of this machine.
func TestIsSelf(t *testing.T) {
	s, err := Open(Options{Port: AnyPort, Engine: InMemory, ReplicaSet: &ReplicaSet{Name: "rs"}})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = s.Close() }()
	own := s.Addr()[len("127.0.0.1:"):]
	for address, want := range map[string]bool{
		s.Addr(): true, "localhost:" + own: true, "[::1]:" + own: true, "127.0.0.1:1": false, "localhost": false, "192.0.2.1:" + own: false, "no-such-host.invalid:" + own: false, "": false,
	} {
		if got := s.isSelf(t.Context(), address); got != want {
			t.Errorf("%q: %v", address, got)
		}
	}
	if s.reachedAt() != s.Addr() {
		t.Error(s.reachedAt())
	}
	for free, want := range map[int64]int64{0: minOplogBytes, 10 << 30: minOplogBytes, 100 << 30: 5 << 30, 10 << 40: maxOplogBytes} {
		if got := oplogFor(free); got != want {
			t.Errorf("with %d bytes free the oplog may have %d", free, got)
		}
	}
}
