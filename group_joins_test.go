package ebb

import (
	"bytes"
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"net"
	"strings"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/ebbdb/ebb/internal/serverlog"
)

// TestJoining: a server that joins a set has the configuration before it has data, also after a restart: no client hears from it that no set has begun, and nobody
// reads there before it has its copy.
func TestJoining(t *testing.T) {
	s := &three{t: t}
	d := openDoor(t)
	copies := "snapshotBegin"
	d.shut.Store(&copies)
	join := Options{Port: AnyPort, DBPath: t.TempDir(), MinFreeBytes: -1, ReserveBytes: -1, ReplicaSet: &ReplicaSet{Name: "rs", Advertise: d.Addr().String()}}
	s.open(0, Options{Port: AnyPort, Engine: InMemory, ReplicaSet: &ReplicaSet{Name: "rs", Initiate: true}})
	s.open(1, join)
	d.to = s.servers[1].Addr()
	join.Port = s.servers[1].network.Addr().(*net.TCPAddr).Port
	go d.serve()
	t.Cleanup(s.close)
	if _, err := s.direct(0).Database("d").Collection("c").InsertOne(t.Context(), bson.M{"_id": 1}); err != nil {
		t.Fatal(err)
	}
	s.reconfig(func(m bson.A) bson.A {
		return append(m, bson.M{"_id": 7, "host": d.Addr().String(), "tags": bson.M{"a": "b"}})
	})
	type member struct {
		ID       int `bson:"_id"`
		StateStr string
		Health   float64
	}
	type status struct {
		MyState int
		Members []member
	}
	look := func(i int) (r status, err error) {
		err = s.direct(i).Database("admin").RunCommand(t.Context(), bson.M{"replSetGetStatus": 1}).Decode(&r)
		return r, err
	}
	isJoining := func() {
		t.Helper()
		s.until("it begins to join", func() error {
			r, err := look(1)
			if err == nil && (r.MyState != 5 || len(r.Members) != 2 || r.Members[0].StateStr != "PRIMARY" || r.Members[1].StateStr != "STARTUP2") {
				err = fmt.Errorf("%+v", r)
			}
			return err
		})
		var hello bson.M
		if err := s.direct(1).Database("admin").RunCommand(t.Context(), bson.M{"hello": 1}).Decode(&hello); err != nil ||
			hello["setName"] != "rs" || hello["me"] != d.Addr().String() || hello["secondary"] != false || hello["isWritablePrimary"] != false || hello["isreplicaset"] != nil {
			t.Errorf("hello: %v, %v", hello, err)
		}
		if _, err := s.direct(1).Database("d").Collection("c").CountDocuments(t.Context(), bson.M{}); code(err) != 13436 {
			t.Errorf("it is read: %v", err)
		}
		if err := s.direct(1).Database("admin").RunCommand(t.Context(), bson.M{"replSetStepUp": 1}).Err(); code(err) != 125 {
			t.Errorf("it is elected: %v", err)
		}
		s.until("the primary knows that it joins", func() error {
			r, err := look(0)
			if err == nil && (len(r.Members) != 2 || r.Members[1] != member{7, "STARTUP2", 1}) {
				err = fmt.Errorf("%+v", r)
			}
			return err
		})
	}
	isJoining()
	s.closeOne(1)
	s.directs[1] = nil
	s.open(1, join)
	isJoining()
	d.shut.Store(nil)
	s.until("it has its copy", func() error {
		n, err := s.direct(1).Database("d").Collection("c").CountDocuments(t.Context(), bson.M{})
		if err == nil && n != 1 {
			err = errors.New("it has not")
		}
		return err
	})
	s.until("it is a secondary", func() error {
		r, err := look(0)
		if err == nil && r.Members[1] != (member{7, "SECONDARY", 1}) {
			err = fmt.Errorf("%+v", r)
		}
		return err
	})
}

// TestAddedOfAnotherSet: a server that was away when it was added and turns out to be another set's, or to have data, does not join, and the primary's status and log
// say why. It joins once its directory is empty.
func TestAddedOfAnotherSet(t *testing.T) {
	s := &three{t: t}
	t.Cleanup(s.close)
	var log bytes.Buffer
	s.open(0, Options{Port: AnyPort, Engine: InMemory, Log: serverlog.New(&log, 0).Logger(), ReplicaSet: &ReplicaSet{Name: "rs", Initiate: true}})
	foreign := Options{Port: AnyPort, DBPath: t.TempDir(), MinFreeBytes: -1, ReserveBytes: -1, ReplicaSet: &ReplicaSet{Name: "rs", Initiate: true}}
	s.open(1, foreign)
	host := s.servers[1].Addr()
	foreign.Port = s.servers[1].network.Addr().(*net.TCPAddr).Port
	idOf := func(i int) string {
		var r struct {
			Config struct {
				Settings struct{ ReplicaSetID bson.ObjectID }
			}
		}
		if err := s.direct(i).Database("admin").RunCommand(t.Context(), bson.M{"replSetGetConfig": 1}).Decode(&r); err != nil {
			t.Fatal(err)
		}
		return hex.EncodeToString(r.Config.Settings.ReplicaSetID[:])
	}
	mismatch := "replica set IDs do not match, ours: " + idOf(0) + "; remote node's: " + idOf(1)
	away := func() {
		s.closeOne(1)
		if s.directs[1] != nil {
			_ = s.directs[1].Disconnect(context.Background())
		}
		s.directs[1] = nil
	}
	var r struct{ Config bson.M }
	if err := s.direct(0).Database("admin").RunCommand(t.Context(), bson.M{"replSetGetConfig": 1}).Decode(&r); err != nil {
		t.Fatal(err)
	}
	r.Config["version"], r.Config["members"] = 2, append(r.Config["members"].(bson.A), bson.M{"_id": 7, "host": host})
	if err := s.command(s.direct(0), bson.M{"replSetReconfig": r.Config}); code(err) != 74 || !strings.Contains(err.Error(), "replica set") {
		t.Errorf("one of another set that answers: %v", err)
	}
	away()
	s.reconfig(func(m bson.A) bson.A { return append(m, bson.M{"_id": 7, "host": host}) })
	tells := func(text string, health float64) {
		t.Helper()
		s.until("the status tells "+text, func() error {
			var r struct {
				Members []struct {
					StateStr, LastHeartbeatMessage string
					Health                         float64
				}
			}
			err := s.direct(0).Database("admin").RunCommand(t.Context(), bson.M{"replSetGetStatus": 1}).Decode(&r)
			if err == nil && (len(r.Members) != 2 || r.Members[1].LastHeartbeatMessage != text || r.Members[1].Health != health) {
				err = fmt.Errorf("%+v", r)
			}
			return err
		})
	}
	s.open(1, foreign)
	tells(mismatch, 0)
	away()
	foreign.DBPath, foreign.ReplicaSet = t.TempDir(), nil
	s.open(1, foreign)
	if _, err := s.direct(1).Database("d").Collection("c").InsertOne(t.Context(), bson.M{"_id": 1}); err != nil {
		t.Fatal(err)
	}
	away()
	foreign.ReplicaSet = &ReplicaSet{Name: "rs"}
	s.open(1, foreign)
	const full = "the server has data already, in d.c"
	tells(full, 0)
	away()
	foreign.DBPath = t.TempDir()
	s.open(1, foreign)
	tells("", 1)
	s.close()
	for _, text := range []string{mismatch, full} {
		if n := strings.Count(log.String(), `"host":"`+host+`","error":"`+text+`"`); n != 1 {
			t.Errorf("%q is told %d times", text, n)
		}
	}
}
