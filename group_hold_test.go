package ebb

import (
	"errors"
	"net"
	"os"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"
)

// TestHoldOfThree: a set whose directories were all copied has a primary, and holds expiry. A copied member that finds a set with a primary leaves that to it.
func TestHoldOfThree(t *testing.T) {
	var all [3]Options
	s := startThree(t, func(i int, o *Options) {
		o.Engine, o.DBPath, o.MinFreeBytes, o.ReserveBytes = Pebble, t.TempDir(), -1, -1
		all[i] = *o
	})
	insert := func(id int) {
		if _, err := s.client.Database("d").Collection("c").InsertOne(t.Context(), bson.M{"_id": id}); err != nil {
			t.Fatal(err)
		}
	}
	insert(1)
	stop := func(i int) {
		all[i].Port = s.servers[i].network.Addr().(*net.TCPAddr).Port
		s.closeOne(i)
		dir := t.TempDir()
		if err := os.CopyFS(dir, os.DirFS(all[i].DBPath)); err != nil {
			t.Fatal(err)
		}
		all[i].DBPath = dir
	}
	for i := range s.servers {
		stop(i)
	}
	for i := range s.servers {
		s.open(i, all[i])
	}
	held := func(i int) (bool, error) {
		var r struct{ TTLHold any }
		err := s.direct(i).Database("admin").RunCommand(t.Context(), bson.D{{Key: "getParameter", Value: 1}, {Key: "ttlHold", Value: 1}}).Decode(&r)
		return r.TTLHold != "release", err
	}
	await := func(what string, want bool) {
		for i := range s.servers {
			s.until(what, func() error {
				is, err := held(i)
				if err == nil && is != want {
					err = errors.New("it is not so")
				}
				return err
			})
		}
	}
	await("the copied set is held", true)
	p := s.primary()
	insert(2)
	if err := s.direct(p).Database("admin").RunCommand(t.Context(), bson.D{{Key: "setParameter", Value: 1}, {Key: "ttlHold", Value: "release"}}).Err(); err != nil {
		t.Fatal(err)
	}
	await("the set is released", false)

	other := (p + 1) % 3
	stop(other)
	s.open(other, all[other])
	s.until("the copied member leaves it to the primary", func() error {
		if s.servers[other].foundation.expiry.Hold.Pending() {
			return errors.New("it still wants to hold expiry")
		}
		return nil
	})
	insert(3)
	await("the set goes on", false)
}
