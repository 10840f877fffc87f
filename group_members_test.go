package ebb

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"
)

// TestQuorumCheck: a configuration whose voters are away for the most part is refused, since nobody could lead by it, nor change it.
func TestQuorumCheck(t *testing.T) {
	s := startThree(t, nil)
	p := s.primary()
	away, other := (p+1)%3, (p+2)%3
	var r struct{ Config bson.M }
	s.until("configuration", func() error {
		return s.direct(p).Database("admin").RunCommand(t.Context(), bson.M{"replSetGetConfig": 1}).Decode(&r)
	})
	members := r.Config["members"].(bson.A)
	s.closeOne(away)
	s.until("the member is known to be away", func() error {
		var r struct {
			Members []struct{ Health float64 }
		}
		if err := s.direct(p).Database("admin").RunCommand(t.Context(), bson.M{"replSetGetStatus": 1}).Decode(&r); err != nil {
			return err
		}
		if len(r.Members) != 3 || r.Members[away].Health != 0 {
			return fmt.Errorf("members: %v", r.Members)
		}
		return nil
	})
	r.Config["version"] = r.Config["version"].(int32) + 1
	r.Config["members"] = slices.Delete(slices.Clone(members), other, other+1)
	if err := s.command(s.direct(p), bson.M{"replSetReconfig": r.Config}); code(err) != 74 || !strings.Contains(err.Error(), "required 2 but only the following 1 voting nodes responded") {
		t.Error("without whoever is there:", err)
	}
	r.Config["members"] = slices.Delete(slices.Clone(members), away, away+1)
	if err := s.command(s.direct(p), bson.M{"replSetReconfig": r.Config}); err != nil {
		t.Error("without who is away:", err)
	}
}

// TestFrozenMember: nobody hands over to a member that is not to be elected for some time.
func TestFrozenMember(t *testing.T) {
	s := startThree(t, nil)
	p := s.primary()
	frozen := (p + 1) % 3
	if p != 0 {
		frozen = 0 // which comes first in the configuration
	}
	if err := s.command(s.direct(frozen), bson.D{{Key: "replSetFreeze", Value: 600}}); err != nil {
		t.Fatal(err)
	}
	s.until("another member leads", func() error { // which may fail as long as the primary has not heard of it
		_ = s.command(s.direct(p), bson.D{{Key: "replSetStepDown", Value: 600}, {Key: "secondaryCatchUpPeriodSecs", Value: 0}})
		if s.primary() == p {
			return errors.New("the same does")
		}
		return nil
	})
	if is := s.primary(); is == frozen {
		t.Errorf("member %d leads, which is frozen", is)
	}
}
