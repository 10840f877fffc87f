package ebbtest_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/ebbdb/ebb/internal/clock"
)

// TestSetLastResort: where the only electable member left lacks what a majority has, the other one, of priority 0, leads until that has it, and no longer.
func TestSetLastResort(t *testing.T) {
	s := startSet(t)
	was := s.Primary()
	behind, passive := s.others(was)[0], s.others(was)[1]
	s.passive(passive)
	s.Isolate(behind)
	majority := is("writeConcern", bson.M{"w": "majority"})
	for i := range 20 {
		if r := s.send(was, bson.D{is("insert", "c"), is("documents", bson.A{bson.M{"_id": i}}), majority, is("$db", "d")}); r.OK != 1 || r.WriteConcernError.Code != 0 {
			t.Fatalf("%+v", r)
		}
	}
	s.Crash(was)
	s.Heal()
	s.until("the electable member leads", func() error {
		if p := s.Primary(); p != behind {
			return fmt.Errorf("member %d does", p)
		}
		return nil
	})
	if n, err := s.directs[behind].Database("d").Collection("c").CountDocuments(t.Context(), bson.M{}); err != nil || n != 20 {
		t.Errorf("it has %d documents: %v", n, err)
	}
	s.Start(was)
	s.Settle()
}

// passive has members have the priority 0, and waits until they go by it.
func (s *set) passive(which ...int) {
	s.t.Helper()
	s.reconfigure(func(members bson.A) bson.A {
		for _, m := range members {
			d := m.(bson.D)
			for k := range d {
				if id := d[0].Value.(int32); d[k].Key == "priority" && slices.Contains(which, int(id)) {
					d[k].Value = 0
				}
			}
		}
		return members
	})
	s.Settle()
	_ = clock.Wait(s.t.Context(), clock.Wall(), 2*time.Second) // a member looks every half a second what it is by the configuration
}

// TestSetOnlyPassive: members of priority 0 do not lead where no other is up for which they would.
func TestSetOnlyPassive(t *testing.T) {
	s := startSet(t)
	was := s.Primary()
	others := s.others(was)
	s.passive(others...)
	s.Crash(was)
	const longer = 9 * time.Second // than a last resort waits
	for waited := time.Duration(0); waited < longer; waited += 500 * time.Millisecond {
		_ = clock.Wait(t.Context(), clock.Wall(), 500*time.Millisecond)
		for _, i := range others {
			var hello struct{ IsWritablePrimary bool }
			if err := s.directs[i].Database("admin").RunCommand(t.Context(), bson.M{"hello": 1}).Decode(&hello); err != nil || hello.IsWritablePrimary {
				t.Fatalf("member %d, of priority 0: %+v, %v", i, hello, err)
			}
		}
	}
	s.Start(was)
	if p := s.Primary(); p != was {
		t.Errorf("member %d leads", p)
	}
}
