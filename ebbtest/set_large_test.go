package ebbtest_test

import (
	"crypto/rand"
	"sync"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"
)

// TestSetLargeEntries: a document of nearly 16 MB takes longer to get to the other members than they wait for a primary that they do not hear. They hear of
// it meanwhile.
func TestSetLargeEntries(t *testing.T) {
	s := startSet(t)
	primary := s.Primary()
	db := s.client.Database("d")
	term := s.term(primary)
	s.SlowDown(6 << 20)
	body := make([]byte, 15_900_000)
	_, _ = rand.Read(body)
	var writers sync.WaitGroup
	for i := range 2 {
		writers.Go(func() {
			if _, err := db.Collection("large").InsertOne(t.Context(), bson.M{"_id": i, "b": body}); err != nil {
				t.Error(err)
			}
		})
	}
	for i := range 3 {
		if _, err := db.Collection("small").InsertOne(t.Context(), bson.M{"_id": i}); err != nil {
			t.Error(err)
		}
	}
	writers.Wait()
	s.SlowDown(0)
	if now := s.Primary(); now != primary || s.term(now) != term {
		t.Errorf("the primary was member %d in term %d, and is member %d in term %d", primary, term, now, s.term(now))
	}
	s.Settle()
}

func (s *set) term(member int) int64 {
	s.t.Helper()
	var r struct{ Term int64 }
	if err := s.directs[member].Database("admin").RunCommand(s.t.Context(), bson.M{"replSetGetStatus": 1}).Decode(&r); err != nil {
		s.t.Fatal(err)
	}
	return r.Term
}
