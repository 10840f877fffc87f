package ebbtest_test

import (
	"fmt"
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
	s.reconfigure(func(members bson.A) bson.A {
		for _, m := range members {
			d := m.(bson.D)
			for k := range d {
				if d[k].Key == "priority" && d[0].Value == int32(passive) {
					d[k].Value = 0
				}
			}
		}
		return members
	})
	s.Settle()
	_ = clock.Wait(t.Context(), clock.Wall(), 2*time.Second) // a member looks every half a second what it is by the configuration
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
