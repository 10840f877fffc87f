package ebbtest_test

import (
	"crypto/rand"
	"sync"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"
)

// TestSetLargeEntries: a document takes longer to get to the other members than they wait for a primary that they do not hear. They hear of it meanwhile. It has
// 4 MB, since the disks in memory copy a file at each sync; TestLargeEntries in e2e has 16. A machine that is busy with other things may have them miss it all the same, but not each time.
func TestSetLargeEntries(t *testing.T) {
	const tries = 4
	s := startSet(t)
	for i := range tries {
		if s.keepsPrimary(i) {
			s.Settle()
			return
		}
	}
	t.Errorf("in %d of %d tries the primary was missed", tries, tries)
}

// keepsPrimary says whether the primary stays while large documents are on their way.
func (s *set) keepsPrimary(try int) bool {
	primary := s.Primary()
	db := s.client.Database("d")
	term := s.term(primary)
	s.SlowDown(3 << 19)
	body := make([]byte, 4_000_000)
	_, _ = rand.Read(body)
	var writers sync.WaitGroup
	for i := range 2 {
		writers.Go(func() {
			if _, err := db.Collection("large").InsertOne(s.t.Context(), bson.M{"_id": bson.M{"try": try, "n": i}, "b": body}); err != nil {
				s.t.Error(err)
			}
		})
	}
	for i := range 3 {
		if _, err := db.Collection("small").InsertOne(s.t.Context(), bson.M{"_id": bson.M{"try": try, "n": i}}); err != nil {
			s.t.Error(err)
		}
	}
	writers.Wait()
	s.SlowDown(0)
	now := s.Primary()
	return now == primary && s.term(now) == term
}

func (s *set) term(member int) int64 {
	s.t.Helper()
	var r struct{ Term int64 }
	if err := s.directs[member].Database("admin").RunCommand(s.t.Context(), bson.M{"replSetGetStatus": 1}).Decode(&r); err != nil {
		s.t.Fatal(err)
	}
	return r.Term
}
