package ebb

import (
	"fmt"
	"net"
	"os"
	"path/filepath"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/ebbdb/ebb/internal/member"
)

// TestMemberStartsAlone: a member's data is not opened without the set, and not written to without its log; with force it is a set of one again.
func TestMemberStartsAlone(t *testing.T) {
	s, options3 := startThreeStored(t)
	if _, err := s.client.Database("d").Collection("c").InsertOne(t.Context(), bson.M{"_id": 1}); err != nil {
		t.Fatal(err)
	}
	p := s.primary()
	port := s.servers[p].network.Addr().(*net.TCPAddr).Port
	for i := range s.servers {
		s.closeOne(i)
	}
	o := options3[p]
	o.ReplicaSet, o.Port = nil, port
	if srv, err := Open(o); err == nil {
		t.Error("it is open without --replSet")
		_ = srv.Close()
	}
	if err := os.RemoveAll(filepath.Join(o.DBPath, member.LogDir)); err != nil {
		t.Fatal(err)
	}
	o.ReplicaSet = &ReplicaSet{Name: "rs"}
	s.open(p, o)
	own := s.direct(p)
	s.until("a write is refused", func() error {
		_, err := own.Database("d").Collection("c").InsertOne(t.Context(), bson.M{"_id": 2})
		if code(err) == 10107 {
			return nil
		}
		return fmt.Errorf("it is taken, or the client has not found the server yet: %w", err)
	})
	if err := own.Database("d").RunCommand(t.Context(), bson.D{{Key: "find", Value: "c"}}).Err(); code(err) != 13436 {
		t.Error("it is read, of whatever time it is:", err)
	}
	var hello struct {
		Secondary bool
		SetName   string
	}
	if err := own.Database("admin").RunCommand(t.Context(), bson.M{"hello": 1}).Decode(&hello); err != nil || hello.Secondary || hello.SetName != "rs" {
		t.Error("it says that it is a secondary:", hello, err)
	}
	var r struct{ Config bson.M }
	if err := own.Database("admin").RunCommand(t.Context(), bson.M{"replSetGetConfig": 1}).Decode(&r); err != nil {
		t.Fatal(err)
	}
	r.Config["members"] = bson.A{r.Config["members"].(bson.A)[p]}
	if err := s.command(own, bson.D{{Key: "replSetReconfig", Value: r.Config}, {Key: "force", Value: true}}); err != nil {
		t.Fatal(err)
	}
	s.until("a set of one", func() error {
		_, err := own.Database("d").Collection("c").InsertOne(t.Context(), bson.M{"_id": 3})
		return err
	})
}

// TestRestoredElsewhere: what a member has left is a set of one again at another address, by a forced configuration and without a restart. What
// other members have left is none of its any more.
func TestRestoredElsewhere(t *testing.T) {
	s, all := startThreeStored(t)
	if _, err := s.client.Database("d").Collection("c").InsertOne(t.Context(), bson.M{"_id": 1}); err != nil {
		t.Fatal(err)
	}
	if err := s.client.Disconnect(t.Context()); err != nil { // as long as somebody hears that its sessions end
		t.Fatal(err)
	}
	p := s.primary()
	for i := range s.servers {
		s.closeOne(i)
	}
	o := all[p]
	if err := os.RemoveAll(filepath.Join(o.DBPath, member.LogDir)); err != nil {
		t.Fatal(err)
	}
	s.directs[p] = nil
	s.open(p, o) // at a port of its own
	own := s.direct(p)
	state := func() (r struct{ MyState int }, err error) {
		err = own.Database("admin").RunCommand(t.Context(), bson.M{"replSetGetStatus": 1}).Decode(&r)
		return r, err
	}
	s.until("it is no member", func() error {
		if _, err := state(); code(err) != 93 {
			return fmt.Errorf("it is one, or the client has not found the server yet: %w", err)
		}
		return nil
	})
	var r struct{ Config bson.M }
	if err := own.Database("admin").RunCommand(t.Context(), bson.M{"replSetGetConfig": 1}).Decode(&r); err != nil {
		t.Fatal(err)
	}
	r.Config["members"] = bson.A{bson.M{"_id": 0, "host": s.servers[p].Addr()}}
	if err := s.command(own, bson.D{{Key: "replSetReconfig", Value: r.Config}, {Key: "force", Value: true}}); err != nil {
		t.Fatal(err)
	}
	s.until("it is the primary", func() error {
		if r, err := state(); err != nil || r.MyState != 1 {
			return fmt.Errorf("%+v: %w", r, err)
		}
		_, err := own.Database("d").Collection("c").InsertOne(t.Context(), bson.M{"_id": 2})
		return err
	})

	// The data of the others is of another log: as long as the set has one member, and when it has a log again.
	old, empty := (p+1)%3, (p+2)%3
	s.directs[old], s.directs[empty] = nil, nil
	s.open(old, all[old])
	o = all[empty]
	o.DBPath = t.TempDir()
	s.open(empty, o)
	add := func(i int) error {
		var r struct{ Config bson.M }
		if err := own.Database("admin").RunCommand(t.Context(), bson.M{"replSetGetConfig": 1}).Decode(&r); err != nil {
			return err
		}
		r.Config["version"] = r.Config["version"].(int32) + 1
		r.Config["members"] = append(r.Config["members"].(bson.A), bson.M{"_id": 10 + i, "host": s.servers[i].Addr()})
		return s.command(own, bson.M{"replSetReconfig": r.Config})
	}
	const nodeNotFound = 74
	if err := add(old); code(err) != nodeNotFound {
		t.Errorf("a member of the old set was taken in: %v", err)
	}
	s.until("another is taken in", func() error { return add(empty) })
	s.until("the other has all", func() error {
		n, err := s.direct(empty).Database("d").Collection("c").CountDocuments(t.Context(), bson.M{})
		if err == nil && n != 2 {
			err = fmt.Errorf("it has %d", n)
		}
		return err
	})
	if err := add(old); code(err) != nodeNotFound {
		t.Errorf("a member of the old set was taken in: %v", err)
	}
}
