package ebbtest_test

import (
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"

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
