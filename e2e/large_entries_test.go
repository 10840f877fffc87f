package e2e

import (
	"crypto/rand"
	"sync"
	"sync/atomic"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"
)

// TestLargeEntries: documents near the limit of 16 MB, each one entry of the log, cost a set of three no primary, nor do they hold up the small writes
// beside them until the driver sees an error.
func TestLargeEntries(t *testing.T) {
	s := startThreeServers(t)
	client := s.initiate()
	db := client.Database("d")
	primary := s.primary()
	before := s.term(primary)
	const writers, each = 2, 8
	body := make([]byte, 15_900_000)
	_, _ = rand.Read(body) // which no compression makes small
	var large sync.WaitGroup
	for w := range writers {
		large.Go(func() {
			for i := range each {
				if _, err := db.Collection("large").InsertOne(t.Context(), bson.M{"_id": w*each + i, "b": body}); err != nil {
					t.Errorf("large document %d of writer %d: %v", i, w, err)
					return
				}
			}
		})
	}
	var over atomic.Bool
	var small sync.WaitGroup
	written := 0
	small.Go(func() {
		for ; !over.Load(); written++ {
			if _, err := db.Collection("small").InsertOne(t.Context(), bson.M{"_id": written}); err != nil {
				t.Errorf("small document %d: %v", written, err)
				return
			}
		}
	})
	large.Wait()
	over.Store(true)
	small.Wait()
	t.Logf("%d small writes beside %d large ones", written, writers*each)
	if now := s.primary(); now != primary || s.term(now) != before {
		t.Errorf("the primary was member %d in term %d, and is member %d in term %d", primary, before, now, s.term(now))
		for i, server := range s.servers {
			t.Logf("the end of member %d's log:\n%s", i, server.Log())
		}
	}
	for i := range s.servers {
		own := s.direct(i).Database("d")
		s.until("all members have all", func() error {
			return s.counts(own, map[string]int{"large": writers * each, "small": written})
		})
	}
}
