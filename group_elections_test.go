package ebb

import (
	"fmt"
	"testing"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
)

// electionStatus is what replSetGetStatus says of elections.
type electionStatus struct {
	Term                     int64
	ElectionCandidateMetrics *struct {
		LastElectionReason                                                 string
		LastElectionDate, NewTermStartDate, WMajorityWriteAvailabilityDate time.Time
		ElectionTerm, ElectionTimeoutMillis                                int64
		LastCommittedOpTimeAtElection                                      struct{ T int64 }
		NumVotesNeeded                                                     int32
		PriorityAtElection                                                 float64
		PriorPrimaryMemberID                                               *int32
	}
	ElectionParticipantMetrics *struct {
		VotedForCandidate           bool
		ElectionTerm                int64
		LastVoteDate                time.Time
		ElectionCandidateMemberID   int32
		PriorityAtElection          float64
		LastAppliedOpTimeAtElection struct{ T int64 }
	}
}

func (s *three) elections(i int) (r electionStatus, err error) {
	err = s.direct(i).Database("admin").RunCommand(s.t.Context(), bson.M{"replSetGetStatus": 1}).Decode(&r)
	return r, err
}

// TestElectionsOfThree: the status of a primary tells why and when it was elected, and by that of the others how they have voted.
func TestElectionsOfThree(t *testing.T) {
	s := startThree(t, nil)
	first := s.primary()
	began, err := s.elections(first)
	if err != nil || began.ElectionCandidateMetrics == nil {
		t.Fatalf("the first primary: %+v, %v", began, err)
	}
	s.until("it steps down", func() error { return s.command(s.direct(first), bson.D{{Key: "replSetStepDown", Value: 30}}) })
	second := s.primary()
	s.until("the primary tells of its election", func() error {
		r, err := s.elections(second)
		c := r.ElectionCandidateMetrics
		switch {
		case err != nil:
			return err
		case c == nil:
			return fmt.Errorf("member %d tells of none", second)
		case c.LastElectionReason != "stepUpRequestSkipDryRun", c.ElectionTerm != r.Term, r.Term <= began.Term, c.NumVotesNeeded != 2, c.PriorityAtElection != 1, c.ElectionTimeoutMillis != 10_000,
			c.LastElectionDate.After(c.NewTermStartDate), c.NewTermStartDate.After(c.WMajorityWriteAvailabilityDate), c.LastElectionDate.IsZero(), c.LastCommittedOpTimeAtElection.T >= r.Term,
			c.PriorPrimaryMemberID == nil || int(*c.PriorPrimaryMemberID) != first:
			return fmt.Errorf("%+v", c)
		}
		votes := 0
		for i := range s.servers {
			if i == second || s.servers[i] == nil {
				continue
			}
			o, err := s.elections(i)
			if err != nil {
				return err
			}
			if o.ElectionCandidateMetrics != nil {
				return fmt.Errorf("member %d tells of an election of its own: %+v", i, o.ElectionCandidateMetrics)
			}
			if p := o.ElectionParticipantMetrics; p != nil && p.ElectionTerm == r.Term {
				if !p.VotedForCandidate || int(p.ElectionCandidateMemberID) != second || p.LastVoteDate.IsZero() || p.PriorityAtElection != 1 || p.LastAppliedOpTimeAtElection.T >= r.Term {
					return fmt.Errorf("member %d: %+v", i, p)
				}
				votes++
			}
		}
		if votes == 0 {
			return fmt.Errorf("nobody has voted for member %d in term %d", second, r.Term)
		}
		return nil
	})
}
