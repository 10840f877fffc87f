package ebbtest_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"

	"github.com/ebbdb/ebb/internal/clock"
)

// reconfigure changes the members of the set's configuration: again where the primary has just changed, so change may find its work done.
func (s *set) reconfigure(change func(members bson.A) bson.A) {
	s.t.Helper()
	s.until("another configuration", func() error {
		p := s.Primary()
		var now struct{ Config bson.M }
		if err := s.directs[p].Database("admin").RunCommand(s.t.Context(), bson.M{"replSetGetConfig": 1}).Decode(&now); err != nil {
			return err
		}
		now.Config["version"] = now.Config["version"].(int32) + 1
		now.Config["members"] = change(now.Config["members"].(bson.A))
		return s.admin(p, bson.M{"replSetReconfig": now.Config})
	})
}

// isRemoved returns nil when a member says that it is of no set, and lets nobody read.
func (s *set) isRemoved(i int) error {
	var hello struct {
		Secondary, IsWritablePrimary bool
		Info                         string
	}
	if err := s.directs[i].Database("admin").RunCommand(s.t.Context(), bson.M{"hello": 1}).Decode(&hello); err != nil {
		return err
	}
	if hello.Secondary || hello.IsWritablePrimary || hello.Info != "Does not have a valid replica set config" {
		return fmt.Errorf("hello of member %d: %+v", i, hello)
	}
	const notPrimaryOrSecondary, invalidReplicaSetConfig = 13436, 93
	var e mongo.CommandError
	if err := s.directs[i].Database("d").RunCommand(s.t.Context(), bson.D{{Key: "find", Value: "c"}}).Err(); !errors.As(err, &e) || e.Code != notPrimaryOrSecondary {
		return fmt.Errorf("find at member %d: %w", i, err)
	}
	if err := s.admin(i, bson.M{"replSetGetStatus": 1}); !errors.As(err, &e) || e.Code != invalidReplicaSetConfig {
		return fmt.Errorf("status of member %d: %w", i, err)
	}
	return nil
}

func (s *set) until(what string, f func() error) {
	s.t.Helper()
	ctx, cancel := context.WithTimeout(s.t.Context(), time.Minute)
	defer cancel()
	for {
		err := f()
		if err == nil {
			return
		}
		if clock.Wait(ctx, clock.Wall(), 10*time.Millisecond) != nil {
			s.t.Fatalf("%s: %v", what, err)
		}
	}
}

// TestSetRemovedWhileAway: a member that is let go while nobody reaches it hears of that when it is there again, and shows
// nobody the data that it still has; taken in again it gets the rest. So does the one that leaves a single member behind, which goes on.
func TestSetRemovedWhileAway(t *testing.T) {
	s := startSet(t)
	s.expiring("c", "at", 1)
	s.Settle()
	p := s.Primary()
	cut := s.others(p)[0]
	var entry any
	leave := func(i int) {
		s.reconfigure(func(members bson.A) (rest bson.A) {
			for _, m := range members {
				if m.(bson.D)[0].Value == int32(i) { // the _id
					entry = m
				} else {
					rest = append(rest, m)
				}
			}
			return rest
		})
	}
	come := func() {
		s.reconfigure(func(members bson.A) bson.A {
			for _, m := range members {
				if m.(bson.D)[0].Value == entry.(bson.D)[0].Value {
					return members
				}
			}
			return append(members, entry)
		})
	}
	s.Isolate(cut)
	leave(cut)
	s.has(cut, "c", 1, 1) // it is a secondary still, as far as it knows
	s.Heal()
	s.until("it was let go", func() error { return s.isRemoved(cut) })
	if _, err := s.client.Database("d").Collection("c").InsertOne(t.Context(), bson.M{"_id": "more", "at": s.Clock.Now()}); err != nil {
		t.Fatal(err)
	}
	if err := s.isRemoved(cut); err != nil {
		t.Error(err)
	}
	come()
	taken := func() {
		t.Helper()
		s.until("it is taken in again", func() error {
			n, err := s.directs[cut].Database("d").Collection("c").CountDocuments(t.Context(), bson.D{})
			if err == nil && n != 2 {
				err = fmt.Errorf("%d documents", n)
			}
			return err
		})
		s.Settle()
		s.has(cut, "c", 2, 2)
	}
	taken()

	leave(cut) // and comes back at once
	come()
	taken()

	s.Isolate(cut)
	leave(cut)
	s.Heal()
	s.until("it was let go again", func() error { return s.isRemoved(cut) })
	s.Stop(cut)
	s.Start(cut)
	s.until("it was let go before it was started again", func() error { return s.isRemoved(cut) })
	p = s.Primary() // which may be another one by now
	other := s.others(p)[0]
	if other == cut {
		other = s.others(p)[1]
	}
	leave(other)
	s.until("it was let go, too", func() error { return s.isRemoved(other) })
	if err := s.isRemoved(cut); err != nil {
		t.Error(err)
	}
	if err := s.isRemoved(p); err == nil {
		t.Error("the one that is left was let go, too")
	}
	s.has(p, "c", 2, 2)
}
