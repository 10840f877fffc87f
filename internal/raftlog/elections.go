package raftlog

import "go.etcd.io/raft/v3"

// Elections are the last ones in which the member has stood, and in which it has voted for another, since it started.
type Elections struct {
	Stood Stood
	Voted Vote
}

// Stood is an election for which a member has stood; Term is 0 where it has for none.
type Stood struct {
	Term uint64
	// Asked says that who led before has asked it to. It has missed that one otherwise.
	Asked bool
	// Before is who led before, 0 where nobody is known to have.
	Before uint64
}

// Vote is one for another member; Term is 0 where there is none.
type Vote struct{ Term, For uint64 }

// Elections are those of which the Core knows.
func (c *Core) Elections() Elections { return c.elections }

// noteElections takes note of an election that there is since it was called last.
func (c *Core) noteElections() {
	s := c.node.BasicStatus()
	term := s.GetTerm()
	stands := s.RaftState == raft.StateCandidate || s.RaftState == raft.StateLeader
	if stands && term > c.elections.Stood.Term {
		c.elections.Stood = Stood{term, c.summoned, c.led}
	}
	if stands || s.Lead != raft.None {
		c.summoned = false
	}
	if vote := s.GetVote(); vote != raft.None && vote != c.disk.id && term > max(c.elections.Voted.Term, c.restarted) {
		c.elections.Voted = Vote{term, vote}
	}
	if s.Lead != raft.None {
		c.led = s.Lead
	}
}
