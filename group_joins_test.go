package ebb

import (
	"errors"
	"fmt"
	"net"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"
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
