package command

import (
	"github.com/ebbdb/ebb/internal/bson"
	"github.com/ebbdb/ebb/internal/clock"
	"github.com/ebbdb/ebb/internal/replset"
	"github.com/ebbdb/ebb/internal/storage/oplog"
)

// Elections are the last ones in which a member has stood, and in which it has voted for another, since it started. Times are in milliseconds since the epoch.
type Elections struct {
	Stood Stood
	Voted Vote
}

// LastApplied is the last entry that a member had at an election; both are 0 where nobody knows.
type LastApplied struct {
	At   oplog.Timestamp
	Term int64
}

// Stood is an election for which a member has stood; Term is 0 where it has for none.
type Stood struct {
	Term, At int64
	// Asked says that who led before has asked it to. It has missed that one otherwise.
	Asked bool
	// Before is the _id of who led before, or Nobody.
	Before  int64
	Applied LastApplied
}

// Vote is one for another member, For by its _id, or Nobody; Term is 0 where there is none. Priority is the voter's.
type Vote struct {
	Term, At, For int64
	Priority      float64
	Applied       LastApplied
}

// Nobody is no member's _id.
const Nobody = -1

// elected is what the member was elected with.
type elected struct {
	term, began int64 // began is when it had everything, and wrote the first entry of the term
	votes       int32
	priority    float64
	timeout     int64
	stood       Stood
}

// noteElection takes note of how the member is that has been elected in a term and has written nothing in it yet.
func (s *Server) noteElection(term int64) {
	v, now := s.Replica.View(), clock.Millis(s.Clock)
	e := &elected{term: term, began: now, votes: majorityOf(s.voters(v.Config)), timeout: v.Config.Settings.ElectionTimeoutMillis}
	if v.Self >= 0 {
		e.priority = v.Config.Members[v.Self].Priority
	}
	if s.grouped() {
		e.stood = s.ReplicaSet.Group.Elections().Stood
	} else {
		e.stood = Stood{Term: term, At: now, Before: Nobody, Applied: LastApplied{s.Query.Store.LastLogged(), s.ReplicaSet.Term.Load()}}
	}
	s.elected.Store(e)
}

func majorityOf(voters int) int32 { return int32(voters/2 + 1) }

// appendElections appends what replSetGetStatus says of the last elections: as the primary of its own, and of the last one in which the member has voted for
// another. What another server of a set would have to be asked for is left out.
func (op *Op) appendElections(b *bson.Builder, v *replset.View) {
	if e := op.elected.Load(); e != nil && v.State == replset.Primary && e.term == v.Term && e.stood.Term == e.term {
		reason := "electionTimeout"
		if e.stood.Asked {
			reason = "stepUpRequestSkipDryRun"
		}
		b.Object("electionCandidateMetrics").String("lastElectionReason", reason).Date("lastElectionDate", e.stood.At).Int64("electionTerm", e.term)
		appendTimeOfTerm(b, "lastCommittedOpTimeAtElection", e.stood.Applied)
		b.Int32("numVotesNeeded", e.votes).Double("priorityAtElection", e.priority).Int64("electionTimeoutMillis", e.timeout)
		if e.stood.Before != Nobody {
			b.Int32("priorPrimaryMemberId", int32(e.stood.Before))
		}
		b.Date("newTermStartDate", e.began).Date("wMajorityWriteAvailabilityDate", v.ElectedAt).End()
	}
	if voted := op.ReplicaSet.Group.Elections().Voted; voted.Term != 0 && voted.For != Nobody {
		b.Object("electionParticipantMetrics").Bool("votedForCandidate", true).Int64("electionTerm", voted.Term).Date("lastVoteDate", voted.At).
			Int32("electionCandidateMemberId", int32(voted.For)).String("voteReason", "")
		appendTimeOfTerm(b, "lastAppliedOpTimeAtElection", voted.Applied)
		b.Double("priorityAtElection", voted.Priority).End()
	}
}

func appendTimeOfTerm(b *bson.Builder, key string, l LastApplied) {
	if l.At != 0 && l.Term != 0 {
		appendEntryTime(b, key, l.At, l.Term)
	}
}
