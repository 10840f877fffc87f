package ebbtest_test

import (
	"context"
	"errors"
	"math"
	"testing"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"

	"github.com/ebbdb/ebb/ebbtest"
)

// MongoDB's own tests of TTL that are about replica sets, and where what they ask is asked here:
//
//	ttl_repl                                what is old goes on all members, a new member gets the rest, collMod is on all and in the oplog: TestExpiryOfAnotherMember (package ebb)
//	ttl_repl_secondary_disabled             a secondary deletes nothing by itself: TestSetSecondariesDeleteNothing
//	ttl_repl_maintenance                    a member's data in a standalone do not expire: TestReplicaSetStandsAlone (package ebb)
//	ttl_skipped_during_initial_sync         a member that gets its first data deletes nothing: TestExpiryOfAnotherMember (package ebb)
//	ttl_non_int_expire_after_seconds        fractions are cut off, on all members: TestExpiryOfAnotherMember (package ebb)
//	ttl_fix_invalid_expire_after_seconds…,  a spec that no server takes any more is neither stored nor there after a failover: there is nothing to mend; TestSetOddSeconds
//	ttl_invalid_index_fixer…, ttl_expire_nan_warning_on_startup
//	user_write_blocking_ttl_index           what is due while the writes of users are blocked, where Ebb differs, whoever is primary: TestSetWritesBlocked
//	ttl_with_restart                        a TTL goes on after a restart: TestSetRestarted
//	ttl_batch_deletes                       the counters of batched deletes: the primary's alone, as in a set of one

// TestSetWritesBlocked: while the writes of users are blocked what is due goes all the same (a difference from MongoDB), and they stay blocked when another member
// is the primary.
func TestSetWritesBlocked(t *testing.T) {
	s := startSet(t)
	c := s.expiring("c", "at", 3)
	block := func(on bool) {
		t.Helper()
		if err := s.client.Database("admin").RunCommand(t.Context(), bson.D{{Key: "setUserWriteBlockMode", Value: 1}, {Key: "global", Value: on}}).Err(); err != nil {
			t.Fatal(err)
		}
	}
	block(true)
	s.stepDown()
	const userWritesBlocked = 371
	var e mongo.ServerError
	if _, err := c.InsertOne(t.Context(), bson.M{}); !errors.As(err, &e) || !e.HasErrorCode(userWritesBlocked) {
		t.Error("a write while they are blocked:", err)
	}
	s.Advance(2 * time.Hour)
	for i := range ebbtest.Members {
		s.has(i, "c", 0, 0)
	}
	block(false)
	if _, err := c.InsertOne(t.Context(), bson.M{}); err != nil {
		t.Error(err)
	}
}

// TestSetRestarted: after all members have been started anew what is too old goes, also what comes only then.
func TestSetRestarted(t *testing.T) {
	s := startSet(t)
	c := s.expiring("c", "at", 3)
	for i := range ebbtest.Members {
		s.Stop(i)
	}
	s.Clock.Advance(2 * time.Hour)
	for i := range ebbtest.Members {
		s.Start(i)
	}
	s.Settle()
	if _, err := c.InsertOne(t.Context(), bson.M{"at": s.Clock.Now().Add(-24 * time.Hour)}); err != nil {
		t.Fatal(err)
	}
	s.Advance(2 * time.Minute)
	for i := range ebbtest.Members {
		s.has(i, "c", 0, 0)
	}
}

// TestSetOddSeconds: a TTL that is no number is refused, and one that has a fraction is stored without; so a new primary finds nothing to mend.
func TestSetOddSeconds(t *testing.T) {
	s := startSet(t)
	create := func(seconds any) error {
		return s.client.Database("d").RunCommand(t.Context(), bson.D{{Key: "createIndexes", Value: "c"},
			{Key: "indexes", Value: bson.A{bson.M{"key": bson.M{"at": 1}, "name": "at_1", "expireAfterSeconds": seconds}}}}).Err()
	}
	for _, odd := range []any{"soon", math.NaN()} {
		if err := create(odd); err == nil {
			t.Errorf("a TTL of %v is taken", odd)
		}
	}
	if err := create(100.3); err != nil {
		t.Fatal(err)
	}
	s.Settle()
	s.stepDown()
	s.Settle()
	for i := range ebbtest.Members {
		specs, err := s.directs[i].Database("d").Collection("c").Indexes().ListSpecifications(t.Context())
		if err != nil || len(specs) != 2 || specs[1].ExpireAfterSeconds == nil || *specs[1].ExpireAfterSeconds != 100 {
			t.Errorf("member %d: %+v %v", i, specs, err)
		}
	}
}

// TestSetToldFurther: what a session has seen expired it does not see again at a member that has heard of its primary a moment ago, before the set's time
// went far on.
func TestSetToldFurther(t *testing.T) {
	s := startSet(t)
	c := s.client.Database("d").Collection("c")
	if err := s.client.Database("d").RunCommand(t.Context(), bson.D{{Key: "createIndexes", Value: "c"},
		{Key: "indexes", Value: bson.A{bson.M{"key": bson.M{"_ts": 1}, "name": "_ts_1", "expireAfterSeconds": 30}}}}).Err(); err != nil {
		t.Fatal(err)
	}
	if _, err := c.InsertOne(t.Context(), bson.M{"_id": 1}); err != nil {
		t.Fatal(err)
	}
	s.Settle()
	secondary := (s.Primary() + 1) % ebbtest.Members
	session, err := s.client.StartSession()
	if err != nil {
		t.Fatal(err)
	}
	defer session.EndSession(t.Context())
	look := func(ctx context.Context, c *mongo.Collection) error {
		ctx, cancel := context.WithTimeout(ctx, time.Second)
		defer cancel()
		return c.FindOne(ctx, bson.M{"_id": 1}).Err()
	}
	s.Isolate(secondary)
	s.Clock.Step(time.Minute)
	if _, err := c.InsertOne(t.Context(), bson.M{"_id": 2}); err != nil { // so that a majority knows the time
		t.Fatal(err)
	}
	if err := c.FindOne(mongo.NewSessionContext(t.Context(), session), bson.M{"_id": 1}).Err(); !errors.Is(err, mongo.ErrNoDocuments) {
		t.Fatal("the primary shows what has expired:", err)
	}
	there, knowing := s.directs[secondary].Database("d").Collection("c"), s.knowing(t.Context(), secondary, session.ClusterTime().Lookup("$clusterTime").Document())
	if err := look(knowing, there); err == nil {
		t.Error("a member shows what the session has seen expired")
	}
	s.Heal()
	for err = look(knowing, there); !errors.Is(err, mongo.ErrNoDocuments); err = look(knowing, there) {
		if err == nil || t.Context().Err() != nil {
			t.Fatal("it does not say that it has expired:", err)
		}
	}
}
