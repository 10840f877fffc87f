package raftlog

import (
	"encoding/binary"
	"math"

	"go.etcd.io/raft/v3"
	pb "go.etcd.io/raft/v3/raftpb"
	"google.golang.org/protobuf/proto"
)

// maxTermsAhead is how far another member's term may be ahead: terms that go up by one at an election never get there, and one at the end of
// the numbers would be the last.
const maxTermsAhead = 1 << 32

// contextBytes is how long the context is that raft gives heartbeats by which reads make sure of the lead.
const contextBytes = 8

// asked is the last such context that a member has sent in a term: they are numbers that rise.
type asked struct{ term, context uint64 }

// note takes note of what is sent.
func (a *asked) note(messages []*pb.Message) {
	for _, m := range messages {
		if m.GetType() == pb.MsgHeartbeat && len(m.GetContext()) == contextBytes {
			*a = asked{m.GetTerm(), readContext(m.GetContext())}
		}
	}
}

func readContext(b []byte) uint64 {
	if len(b) != contextBytes {
		return math.MaxUint64
	}
	return binary.LittleEndian.Uint64(b)
}

// isPlausible says whether another member can have sent such a message. Raft trusts what it is told about its own log, and panics where that
// cannot be; where members need not show that they are such, anybody can tell it.
func (c *Core) isPlausible(m *pb.Message) bool {
	if m.GetTo() != c.disk.id || m.GetFrom() == 0 || m.GetFrom() == c.disk.id || raft.IsLocalMsg(m.GetType()) {
		return false
	}
	if term := m.GetTerm(); term == 0 || term > c.node.BasicStatus().GetTerm()+maxTermsAhead {
		return false
	}
	switch m.GetType() {
	case pb.MsgApp:
		return arePlausible(m)
	case pb.MsgHeartbeat: // commits what the member has said that it has
		return m.GetCommit() <= c.disk.last
	case pb.MsgAppResp: // of what this member has sent
		return m.GetIndex() <= c.end || m.GetReject()
	case pb.MsgSnap:
		return isPlausibleSnapshot(m.GetSnapshot())
	case pb.MsgHeartbeatResp: // with the context of a heartbeat
		return len(m.GetContext()) == 0 || m.GetTerm() == c.asked.term && readContext(m.GetContext()) <= c.asked.context
	case pb.MsgVote, pb.MsgVoteResp, pb.MsgPreVote, pb.MsgPreVoteResp, pb.MsgTimeoutNow:
		return true
	}
	return false
}

// arePlausible says whether the entries of a message follow one another, in terms that do not go back, and can be read.
func arePlausible(m *pb.Message) bool {
	index, term := m.GetIndex(), m.GetLogTerm()
	for _, e := range m.GetEntries() {
		if index++; e.GetIndex() != index || e.GetTerm() < term || e.GetTerm() > m.GetTerm() || !isReadable(e) {
			return false
		}
		term = e.GetTerm()
	}
	return term <= m.GetTerm()
}

func isReadable(e *pb.Entry) bool {
	switch e.GetType() {
	case pb.EntryNormal:
		_, _, err := readEntry(e.GetData())
		return err == nil
	case pb.EntryConfChangeV2:
		return proto.Unmarshal(e.GetData(), &pb.ConfChangeV2{}) == nil
	}
	return false
}

func isPlausibleSnapshot(s *pb.Snapshot) bool {
	conf := s.GetMetadata().GetConfState()
	if s.GetMetadata().GetIndex() == 0 || s.GetMetadata().GetTerm() == 0 || len(conf.GetVoters()) == 0 || len(conf.GetVoters())+len(conf.GetLearners()) > maxPeers {
		return false
	}
	_, _, _, err := readSnapshot(s.GetData())
	return err == nil
}
