package ebbtest_test

import (
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"

	"github.com/ebbdb/ebb/ebbtest"
	"github.com/ebbdb/ebb/internal/mongoerr"
)

// TestSetStepUp: who is asked to step up is primary when it says so, and says so when it cannot be.
func TestSetStepUp(t *testing.T) {
	s := startSet(t)
	others := s.others(s.Primary())
	stepUp := bson.D{{Key: "replSetStepUp", Value: 1}}
	if err := s.admin(others[0], bson.D{{Key: "replSetFreeze", Value: 60}}); err != nil {
		t.Fatal(err)
	}
	if err := s.admin(others[0], stepUp); codeOf(err) != mongoerr.CommandFailed {
		t.Error(err)
	}
	if err := s.admin(others[1], stepUp); err != nil {
		t.Error(err)
	}
	if p := s.Primary(); p != others[1] {
		t.Errorf("member %d is primary, not %d", p, others[1])
	}
}

// TestSetStepDownEndsCursors (difference 96): the cursors of whoever changes its role are gone, and those of a secondary that stays one go on.
func TestSetStepDownEndsCursors(t *testing.T) {
	s := startSet(t)
	was := s.Primary()
	documents := make([]bson.M, 10)
	for i := range documents {
		documents[i] = bson.M{"_id": i}
	}
	if _, err := s.directs[was].Database("d").Collection("c").InsertMany(t.Context(), documents); err != nil {
		t.Fatal(err)
	}
	s.Settle()
	var cursors [ebbtest.Members]*mongo.Cursor
	for i := range cursors {
		var err error
		if cursors[i], err = s.directs[i].Database("d").Collection("c").Find(t.Context(), bson.M{}, options.Find().SetBatchSize(2)); err != nil {
			t.Fatal(err)
		}
	}
	is := s.stepDown()
	for i, c := range cursors {
		found := 0
		for c.Next(t.Context()) {
			found++
		}
		want, code := len(documents), mongoerr.Code(0)
		if i == was || i == is {
			want, code = 2, mongoerr.CursorNotFound
		}
		if err := c.Err(); found != want || codeOf(err) != code || code == 0 && err != nil {
			t.Errorf("member %d, primary %d and then %d: %d documents, %v", i, was, is, found, err)
		}
	}
}
