package ebbtest_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"

	"github.com/ebbdb/ebb/ebbtest"
)

// snapshotOf is how many documents of a collection a member has as of a time, of its choice where that is zero, and the time that it tells. n is -1 where it has
// that state no more.
func (s *set) snapshotOf(member int, coll string, at bson.Timestamp) (n int, told bson.Timestamp) {
	s.t.Helper()
	ctx, cancel := context.WithTimeout(s.t.Context(), 20*time.Second)
	defer cancel()
	concern := bson.D{{Key: "level", Value: "snapshot"}}
	if at.T != 0 {
		concern = append(concern, bson.E{Key: "atClusterTime", Value: at})
	}
	var reply struct {
		Cursor struct {
			FirstBatch    []bson.Raw
			AtClusterTime bson.Timestamp
		}
	}
	err := s.directs[member].Database("d").RunCommand(ctx, bson.D{{Key: "find", Value: coll}, {Key: "readConcern", Value: concern}}).Decode(&reply)
	var e mongo.ServerError
	if errors.As(err, &e) && e.HasErrorCode(snapshotTooOld) {
		return -1, at
	}
	if err != nil {
		s.t.Errorf("member %d as of %v: %v", member, at, err)
	}
	return len(reply.Cursor.FirstBatch), reply.Cursor.AtClusterTime
}

const snapshotTooOld = 239

// TestSetSnapshots: as of a time that a member tells each member has the same, or says that it has it no more.
func TestSetSnapshots(t *testing.T) {
	s := startSet(t)
	c := s.client.Database("d").Collection("c")
	insert := func() {
		if _, err := c.InsertOne(t.Context(), bson.M{}); err != nil {
			t.Fatal(err)
		}
	}
	insert()
	s.Settle()
	for told := range ebbtest.Members {
		n, at := s.snapshotOf(told, "c", bson.Timestamp{})
		if n != told+1 {
			t.Fatalf("member %d has %d documents", told, n)
		}
		for i := range ebbtest.Members {
			if now, same := s.snapshotOf(i, "c", at); now != n || same != at {
				t.Errorf("as of %v member %d has %d documents, member %d had %d, and nobody writes", at, i, now, told, n)
			}
		}
		insert()
		s.Settle()
		for i := range ebbtest.Members {
			if later, _ := s.snapshotOf(i, "c", at); later != n {
				t.Errorf("as of %v member %d has %d documents, member %d had %d", at, i, later, told, n)
			}
		}
	}
	n, at := s.snapshotOf(s.Primary(), "c", bson.Timestamp{})
	insert()
	s.Settle()
	for i := range ebbtest.Members {
		if later, _ := s.snapshotOf(i, "c", at); later != n && (later != -1 || i == s.Primary()) {
			t.Errorf("as of %v member %d has %d documents, the primary had %d", at, i, later, n)
		}
	}
}

// TestSetTimesToCome: no member waits for a time that nobody can have told.
func TestSetTimesToCome(t *testing.T) {
	s := startSet(t)
	s.Settle()
	later := bson.Timestamp{T: uint32(s.Clock.Now().Add(time.Hour).Unix()), I: 1}
	for i := range ebbtest.Members {
		for _, concern := range []bson.M{{"afterClusterTime": later}, {"level": "snapshot", "atClusterTime": later}} {
			ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
			err := s.directs[i].Database("d").RunCommand(ctx, bson.D{{Key: "find", Value: "c"}, {Key: "readConcern", Value: concern}}).Err()
			cancel()
			var e mongo.ServerError
			if !errors.As(err, &e) || !e.HasErrorCode(invalidOptions) {
				t.Errorf("member %d is asked for %v: %v", i, concern, err)
			}
		}
	}
}
