package ebb

import (
	"bytes"
	"errors"
	"net"
	"os"
	"strings"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/ebbdb/ebb/internal/serverlog"
)

// lead has a member be the primary.
func (s *three) lead(i int) {
	s.t.Helper()
	s.until("the member leads", func() error {
		p := s.primary()
		if p == i {
			return nil
		}
		_ = s.command(s.direct(p), bson.D{{Key: "replSetStepDown", Value: 1}, {Key: "secondaryCatchUpPeriodSecs", Value: 0}}) // for either of the others
		return errors.New("another one does")
	})
}

// TestHoldOfThree: a set whose directories were all copied has a primary, and holds expiry, whoever is the primary. A copied member that finds a set with a
// primary leaves that to it, and holds nothing when it is the primary later.
func TestHoldOfThree(t *testing.T) {
	t.Parallel() // it mostly waits
	var all [3]Options
	var log bytes.Buffer
	s := startThree(t, func(i int, o *Options) {
		if i == 0 {
			o.Log = serverlog.New(&log, 0).Logger()
		}
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
	s.lead((s.primary() + 1) % 3)
	await("the copied set is held by another primary, too", true)
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
	s.lead(other)
	insert(4)
	await("the set goes on with the copied member as its primary", false)

	copied := 1
	if other == 0 {
		copied++
	}
	s.close()
	if n := strings.Count(log.String(), "The data directory of this member of a replica set is a copy"); n != copied {
		t.Errorf("a member that was copied %d times tells so %d times", copied, n)
	}
}
