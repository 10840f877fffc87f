package ebb

import (
	"fmt"
	"testing"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"

	"github.com/ebbdb/ebb/internal/clock"
)

// TestExpiryOfAnotherMember asks what MongoDB's own tests of TTL in replica sets do (ttl_repl, ttl_skipped_during_initial_sync,
// ttl_non_int_expire_after_seconds): of a document an hour those go that are old enough, on all members; one that is added gets what is left, and deletes nothing
// itself, though it is given what has expired; an expireAfterSeconds with a fraction is a whole number on all; and another one is on all, and in the oplog beside
// the one before.
func TestExpiryOfAnotherMember(t *testing.T) {
	now := clock.NewFake(time.UnixMilli(1_767_323_045_000))
	s := &three{t: t}
	for i := range s.servers {
		s.open(i, Options{Port: AnyPort, Engine: InMemory, Clock: fakeClock{now}, ReplicaSet: &ReplicaSet{Name: "rs", Initiate: i == 0}})
	}
	t.Cleanup(s.close)
	add := func(i int) {
		s.reconfig(func(m bson.A) bson.A { return append(m, bson.M{"_id": i, "host": s.servers[i].Addr()}) })
		s.voters(i + 1) // a set of one is not a primary for a moment when it grows
	}
	add(1)
	first := s.primary()
	admin, c := s.direct(first).Database("admin"), s.direct(first).Database("d").Collection("c")
	run := func(db *mongo.Database, command any) {
		t.Helper()
		if err := db.RunCommand(t.Context(), command).Err(); err != nil {
			t.Fatal(err)
		}
	}
	insert := func(hours ...int) {
		t.Helper()
		for _, h := range hours {
			if _, err := c.InsertOne(t.Context(), bson.M{"x": now.Now().Add(-time.Duration(h) * time.Hour)}); err != nil {
				t.Fatal(err)
			}
		}
	}
	has := func(members, documents int) {
		t.Helper()
		for i := range members {
			s.until(fmt.Sprintf("member %d has %d documents", i, documents), func() error {
				n, err := s.direct(i).Database("d").Collection("c").CountDocuments(t.Context(), bson.M{})
				if err == nil && int(n) != documents {
					err = fmt.Errorf("it has %d", n)
				}
				return err
			})
		}
	}
	for h := range 24 {
		insert(h)
	}
	has(2, 24)
	run(c.Database(), bson.D{{Key: "createIndexes", Value: "c"}, {Key: "indexes", Value: bson.A{bson.M{"key": bson.M{"x": 1}, "name": "x_1", "expireAfterSeconds": 20000.7}}}})
	now.Advance(2 * time.Minute) // after which a new TTL deletes
	has(2, 6)

	run(admin, bson.D{{Key: "setParameter", Value: 1}, {Key: "ttlMonitorEnabled", Value: false}})
	insert(10, 20, 30)
	add(2)
	has(3, 9)
	now.Advance(2 * time.Minute)
	has(3, 9)
	var stats struct {
		Metrics struct {
			TTL struct{ DeletedDocuments int64 }
		}
	}
	if err := s.direct(2).Database("admin").RunCommand(t.Context(), bson.M{"serverStatus": 1}).Decode(&stats); err != nil || stats.Metrics.TTL.DeletedDocuments != 0 {
		t.Errorf("the new member has deleted %d, %v", stats.Metrics.TTL.DeletedDocuments, err)
	}
	run(admin, bson.D{{Key: "setParameter", Value: 1}, {Key: "ttlMonitorEnabled", Value: true}})
	now.Advance(2 * time.Minute)
	has(3, 6)

	seconds := func(want int32) {
		t.Helper()
		for i := range s.servers {
			s.until(fmt.Sprintf("member %d has %d seconds", i, want), func() error {
				specs, err := s.direct(i).Database("d").Collection("c").Indexes().ListSpecifications(t.Context())
				if err == nil && (len(specs) != 2 || specs[1].ExpireAfterSeconds == nil || *specs[1].ExpireAfterSeconds != want) {
					err = fmt.Errorf("its indexes are %+v", specs)
				}
				return err
			})
		}
	}
	seconds(20000)
	run(c.Database(), bson.D{{Key: "collMod", Value: "c"}, {Key: "index", Value: bson.D{{Key: "keyPattern", Value: bson.M{"x": 1}}, {Key: "expireAfterSeconds", Value: 10000}}}})
	seconds(10000)
	now.Advance(2 * time.Minute)
	has(3, 3)
	for i := range s.servers {
		var entry struct {
			O  struct{ Index struct{ Name string } }
			O2 struct {
				Was struct{ ExpireAfterSeconds int32 } `bson:"indexOptions_old"`
			}
		}
		err := s.direct(i).Database("local").Collection("oplog.rs").FindOne(t.Context(), bson.M{"o.collMod": "c"}).Decode(&entry)
		if err != nil || entry.O.Index.Name != "x_1" || entry.O2.Was.ExpireAfterSeconds != 20000 {
			t.Errorf("member %d's oplog tells of the change as %+v, %v", i, entry, err)
		}
	}
}
