package ebb

import (
	"context"
	"errors"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/cockroachdb/pebble/v2"
	pb "go.etcd.io/raft/v3/raftpb"
	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"
	"google.golang.org/protobuf/proto"

	"github.com/ebbdb/ebb/internal/host"
	"github.com/ebbdb/ebb/internal/kv"
	"github.com/ebbdb/ebb/internal/member"
)

// TestReplicaSetRestarts: a member that begins a set by itself is the same member when it is started again, in a later term, and its
// clock goes on.
func TestReplicaSetRestarts(t *testing.T) {
	o := Options{Port: AnyPort, DBPath: t.TempDir(), ReplicaSet: &ReplicaSet{Name: "rs", Initiate: true, OplogBytes: 1 << 30}}
	var ids, times []string
	for run := range 3 {
		asServer(t, o, func(_ *Server, client *mongo.Client) {
			var status struct {
				Set     string
				MyState int
				Term    int64
				Optimes struct{ AppliedOpTime struct{ TS bson.Timestamp } }
			}
			if err := client.Database("admin").RunCommand(t.Context(), bson.D{{Key: "replSetGetStatus", Value: 1}}).Decode(&status); err != nil {
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
			if err := client.Database("admin").RunCommand(t.Context(), bson.D{{Key: "replSetGetConfig", Value: 1}}).Decode(&conf); err != nil {
				t.Fatal(err)
			}
			ids = append(ids, conf.Config.Settings.ReplicaSetID.Hex())
			ts := status.Optimes.AppliedOpTime.TS
			times = append(times, strconv.FormatUint(uint64(ts.T)<<32|uint64(ts.I), 10))
			if _, err := client.Database("test").Collection("c").InsertOne(t.Context(), bson.D{{Key: "_id", Value: run}}); err != nil {
				t.Fatal(err)
			}
		})
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
		if got := oplogFor(free, minOplogBytes); got != want {
			t.Errorf("with %d bytes free the oplog may have %d", free, got)
		}
	}
	if got := s.replicaSet().OplogBytes; got < minMemoryOplogBytes || got > max(minMemoryOplogBytes, host.Look().MemoryLimit/oplogShare) {
		t.Errorf("in memory the oplog may have %d bytes", got)
	}
}

// TestSalvageOfLog: what a member's log has behind its store is told to be lost, for it is not copied.
func TestSalvageOfLog(t *testing.T) {
	o := Options{DBPath: t.TempDir(), ReplicaSet: &ReplicaSet{Name: "rs", Initiate: true}}
	asServer(t, o, func(*Server, *mongo.Client) {})
	log, err := pebble.Open(filepath.Join(o.DBPath, member.LogDir), &pebble.Options{})
	if err != nil {
		t.Fatal(err)
	}
	for index, number := range map[byte]uint64{1: 1, 2: 1 << 40, 3: 1<<40 + 1} { // the first is in the store
		data, err := (&kv.Commit{Number: number, Writes: &kv.WriteList{}}).AppendBinary([]byte{1})
		if err != nil {
			t.Fatal(err)
		}
		entry, err := proto.Marshal(&pb.Entry{Data: data})
		if err != nil {
			t.Fatal(err)
		}
		if err := log.Set([]byte{'e', 0, 0, 0, 0, 0, 0, 0, index}, entry, pebble.Sync); err != nil {
			t.Fatal(err)
		}
	}
	if err := log.Close(); err != nil {
		t.Fatal(err)
	}
	s, err := Salvage(o.DBPath, filepath.Join(t.TempDir(), "dump"))
	if err != nil || s.LostCount != 1 || !strings.HasPrefix(s.Lost[0], "2 commits behind the last in the store") || s.IsComplete() {
		t.Errorf("%+v, %v", s, err)
	}
}

// asServer runs f with a client of a server that is started for it and stopped afterwards, and returns the server's start-up warnings.
func asServer(t *testing.T, o Options, f func(*Server, *mongo.Client)) string {
	t.Helper()
	o.Port, o.ScriptsInProcess = AnyPort, true
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
	f(s, client)
	warnings := strings.Join(s.log.StartupWarnings(), "\n")
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
	return warnings
}

// asked is what a command answers: a document, or the error's code.
func asked(t *testing.T, client *mongo.Client, db string, command bson.D) (bson.M, int) {
	t.Helper()
	var reply bson.M
	err := client.Database(db).RunCommand(t.Context(), command).Decode(&reply)
	var refused mongo.CommandError
	switch {
	case errors.As(err, &refused):
		return nil, int(refused.Code)
	case err != nil:
		t.Fatal(err)
	}
	return reply, 0
}

// TestReplicaSetByAnotherName: a server whose configuration is another set's warns, is removed, and takes no writes; under the right name it
// is what it was.
func TestReplicaSetByAnotherName(t *testing.T) {
	o := Options{DBPath: t.TempDir(), ReplicaSet: &ReplicaSet{Name: "rs", Initiate: true, OplogBytes: 1 << 30}}
	asServer(t, o, func(_ *Server, client *mongo.Client) {
		if _, err := client.Database("test").Collection("c").InsertOne(t.Context(), bson.D{{Key: "_id", Value: 1}}); err != nil {
			t.Error(err)
		}
	})
	o.ReplicaSet = &ReplicaSet{Name: "other", Initiate: true}
	warnings := asServer(t, o, func(_ *Server, client *mongo.Client) {
		hello, _ := asked(t, client, "admin", bson.D{{Key: "hello", Value: 1}})
		if hello["isWritablePrimary"] != false || hello["secondary"] != false || hello["isreplicaset"] != true || hello["info"] != "Does not have a valid replica set config" || hello["setName"] != nil {
			t.Error(hello)
		}
		for _, c := range []struct {
			db      string
			command bson.D
			code    int
		}{
			{"admin", bson.D{{Key: "replSetGetStatus", Value: 1}}, 93},
			{"admin", bson.D{{Key: "replSetInitiate", Value: bson.D{}}}, 23},
			{"admin", bson.D{{Key: "replSetStepDown", Value: 20}}, 10107},
			{"admin", bson.D{{Key: "replSetFreeze", Value: 10}}, 0},
			{"admin", bson.D{{Key: "replSetGetConfig", Value: 1}}, 0},
			{"test", bson.D{{Key: "insert", Value: "c"}, {Key: "documents", Value: bson.A{bson.D{}}}}, 10107},
			{"test", bson.D{{Key: "find", Value: "c"}, {Key: "$readPreference", Value: bson.D{{Key: "mode", Value: "nearest"}}}}, 13436},
			{"local", bson.D{{Key: "find", Value: "system.replset"}}, 0},
		} {
			if _, code := asked(t, client, c.db, c.command); code != c.code {
				t.Errorf("%v: %d, want %d", c.command, code, c.code)
			}
		}
	})
	if !strings.Contains(warnings, "document set name differs from command line set name; waiting for reconfig or remote heartbeat") {
		t.Error(warnings)
	}
	o.ReplicaSet = &ReplicaSet{Name: "rs"}
	asServer(t, o, func(_ *Server, client *mongo.Client) {
		status, _ := asked(t, client, "admin", bson.D{{Key: "replSetGetStatus", Value: 1}})
		if status["myState"] != int32(1) || status["term"] != int64(2) {
			t.Error(status)
		}
		if n, err := client.Database("test").Collection("c").CountDocuments(t.Context(), bson.D{}); n != 1 || err != nil {
			t.Error(n, err)
		}
	})
}

// TestReplicaSetStandsAlone: a server without --replSet on the data of a member is a standalone that warns, lets nothing go and writes no
// oplog; the member goes on behind the entries that it has.
func TestReplicaSetStandsAlone(t *testing.T) {
	member := Options{DBPath: t.TempDir(), ReplicaSet: &ReplicaSet{Name: "rs", Initiate: true, OplogBytes: 1 << 30},
		Parameters: map[string]string{"ttlChangeGraceSecs": "0"}}
	entries := func(client *mongo.Client) int64 {
		n, err := client.Database("local").Collection("oplog.rs").CountDocuments(t.Context(), bson.D{{Key: "ns", Value: "test.c"}})
		if err != nil {
			t.Error(err)
		}
		return n
	}
	insert := func(client *mongo.Client, id int) {
		if _, err := client.Database("test").Collection("c").InsertOne(t.Context(), bson.D{{Key: "_id", Value: id}, {Key: "at", Value: bson.DateTime(0)}}); err != nil {
			t.Error(err)
		}
	}
	asServer(t, member, func(_ *Server, client *mongo.Client) {
		insert(client, 1)
		if n := entries(client); n != 1 {
			t.Error(n)
		}
	})
	alone := member
	alone.ReplicaSet = nil
	warnings := asServer(t, alone, func(s *Server, client *mongo.Client) {
		hello, _ := asked(t, client, "admin", bson.D{{Key: "hello", Value: 1}})
		if hello["isWritablePrimary"] != true || hello["setName"] != nil || hello["isreplicaset"] != nil || hello["$clusterTime"] != nil {
			t.Error(hello)
		}
		if _, code := asked(t, client, "admin", bson.D{{Key: "replSetGetStatus", Value: 1}}); code != 76 {
			t.Error(code)
		}
		insert(client, 2)
		index := mongo.IndexModel{Keys: bson.D{{Key: "at", Value: 1}}, Options: options.Index().SetExpireAfterSeconds(1)}
		if _, err := client.Database("test").Collection("c").Indexes().CreateOne(t.Context(), index); err != nil {
			t.Error(err)
		}
		if err := s.SweepNow(t.Context()); err != nil {
			t.Error(err)
		}
		if n, err := client.Database("test").Collection("c").CountDocuments(t.Context(), bson.D{}); n != 2 || err != nil {
			t.Error(n, err)
		}
		if n := entries(client); n != 1 {
			t.Error(n)
		}
	})
	if !strings.Contains(warnings, "Document(s) exist in 'system.replset', but started without --replSet.") {
		t.Error(warnings)
	}
	warnings = asServer(t, member, func(s *Server, client *mongo.Client) {
		insert(client, 3)
		if err := s.SweepNow(t.Context()); err != nil {
			t.Error(err)
		}
		if n, err := client.Database("test").Collection("c").CountDocuments(t.Context(), bson.D{}); n != 0 || err != nil {
			t.Error(n, err)
		}
	})
	if strings.Contains(warnings, "replSet") || !strings.Contains(warnings, "does not have a valid entry for the current node") {
		t.Error(warnings) // its port is another one each time
	}
}

// TestReplicaSetLosesItsOplog: a member whose oplog was dropped while it stood alone begins another one.
func TestReplicaSetLosesItsOplog(t *testing.T) {
	member := Options{DBPath: t.TempDir(), ReplicaSet: &ReplicaSet{Name: "rs", Initiate: true, OplogBytes: 1 << 30}}
	asServer(t, member, func(*Server, *mongo.Client) {})
	alone := member
	alone.ReplicaSet = nil
	asServer(t, alone, func(_ *Server, client *mongo.Client) {
		if err := client.Database("local").Collection("oplog.rs").Drop(t.Context()); err != nil {
			t.Error(err)
		}
	})
	asServer(t, member, func(_ *Server, client *mongo.Client) {
		if _, err := client.Database("test").Collection("c").InsertOne(t.Context(), bson.D{{Key: "_id", Value: 1}}); err != nil {
			t.Error(err)
		}
		if n, err := client.Database("local").Collection("oplog.rs").CountDocuments(t.Context(), bson.D{{Key: "ns", Value: "test.c"}}); n != 1 || err != nil {
			t.Error(n, err)
		}
	})
}

// TestAdvertise: the address that the server is told to advertise is that of the configuration that it begins with. Another one later is a
// warning, and changes nothing.
func TestAdvertise(t *testing.T) {
	o := Options{DBPath: t.TempDir(), ReplicaSet: &ReplicaSet{Name: "rs", Initiate: true, Advertise: "ebb.example.org:27017", OplogBytes: 1 << 30}}
	for _, c := range []struct{ advertise, warning string }{
		{"ebb.example.org:27017", ""}, {"ebb.example.org:27017", ""}, {"other.example.org:27017", "has another address than --advertise says"},
	} {
		o.ReplicaSet.Advertise = c.advertise
		warnings := asServer(t, o, func(_ *Server, client *mongo.Client) {
			hello, _ := asked(t, client, "admin", bson.D{{Key: "hello", Value: 1}})
			if hello["me"] != "ebb.example.org:27017" || hello["primary"] != hello["me"] || hello["isWritablePrimary"] != true {
				t.Error(hello)
			}
		})
		if strings.Contains(warnings, "--advertise") != (c.warning != "") || !strings.Contains(warnings, c.warning) {
			t.Errorf("%+v: %s", c, warnings)
		}
	}
}

// TestSalvageOfMember: what belongs to the replica set is not copied, since it would make the server that it is restored to a member.
func TestSalvageOfMember(t *testing.T) {
	o := Options{DBPath: t.TempDir(), ReplicaSet: &ReplicaSet{Name: "rs", Initiate: true, OplogBytes: 1 << 30}}
	asServer(t, o, func(_ *Server, client *mongo.Client) {
		if _, err := client.Database("test").Collection("c").InsertOne(t.Context(), bson.D{{Key: "_id", Value: 1}}); err != nil {
			t.Error(err)
		}
	})
	out := filepath.Join(t.TempDir(), "dump")
	s, err := Salvage(o.DBPath, out)
	if err != nil || s.LostCount > 0 {
		t.Fatal(s, err)
	}
	slices.Sort(s.LeftOut)
	if want := []string{"config.image_collection", "config.system.preimages", "config.transactions", "local.oplog.rs", "local.replset.election", "local.system.replset"}; !slices.Equal(s.LeftOut, want) {
		t.Errorf("left out: %q", s.LeftOut)
	}
	copied, err := filepath.Glob(filepath.Join(out, "*", "*.bson"))
	if err != nil || !slices.Contains(copied, filepath.Join(out, "test", "c.bson")) || slices.ContainsFunc(copied, func(name string) bool { return strings.Contains(name, "oplog") || strings.Contains(name, "replset") }) {
		t.Error(copied, err)
	}
}
