package raftlog

import (
	"math/rand/v2"
	"testing"

	"go.etcd.io/raft/v3"
	pb "go.etcd.io/raft/v3/raftpb"
	"google.golang.org/protobuf/proto"

	"github.com/ebbdb/ebb/internal/testseed"
)

// TestSlowDisk: a member whose disk takes long leads on, and hears and says all that promises nothing of what is not there yet. One whose disk does
// nothing at all falls silent, until it does again.
func TestSlowDisk(t *testing.T) {
	c := threeMembers(t, rand.New(rand.NewPCG(testseed.Of(t), 0)))
	elect(t, c)
	term := c.Role().Term
	if ok, err := c.Propose(term, [][]byte{{kindCommit, 2}}); !ok || err != nil {
		t.Fatal(ok, err)
	}
	var writes []*Write
	// beat is one tick, and how many heartbeats the second member has got in it, which it answers.
	beat := func() (heard int) {
		c.Tick()
		for c.HasReady() {
			out, err := c.Process()
			if err != nil {
				t.Fatal(err)
			}
			for _, m := range out.Messages {
				if m.GetTo() == 2 && m.GetType() == pb.MsgHeartbeat {
					heard++
					c.Step(&pb.Message{Type: pb.MsgHeartbeatResp.Enum(), From: proto.Uint64(2), To: proto.Uint64(1), Term: proto.Uint64(term)})
				}
			}
			writes = append(writes, c.Writes()...)
		}
		return heard
	}
	heard := 0
	for range stalledTicks {
		heard += beat()
	}
	if heard < stalledTicks/heartbeatTicks || !c.Role().Leads {
		t.Fatalf("while its disk was slow there were %d heartbeats in %d ticks: %+v", heard, stalledTicks, c.Role())
	}
	if c.Committed() >= c.end {
		t.Error("an entry is committed that nobody has")
	}
	for range 4 * heartbeatTicks {
		beat()
	}
	for range electionTicks {
		if beat() > 0 {
			t.Fatal("with a disk that does nothing it goes on to lead")
		}
	}
	if err := c.disk.Put(writes); err != nil {
		t.Fatal(err)
	}
	for _, w := range writes {
		if _, err := c.Written(w); err != nil {
			t.Fatal(err)
		}
	}
	if heard := beat() + beat() + beat(); heard == 0 || !c.Role().Leads {
		t.Errorf("the disk has done it, and there are %d heartbeats: %+v", heard, c.Role())
	}
}

// TestOnlyVoter: a member that nobody else votes beside waits for nobody, unless it is not to lead.
func TestOnlyVoter(t *testing.T) {
	for _, idle := range []bool{false, true} {
		c := firstOf(t, rand.New(rand.NewPCG(testseed.Of(t), 0)), Peers{{ID: 1}})
		c.SetIdle(idle, false)
		c.Tick()
		process(t, c)
		if c.Role().Leads == idle {
			t.Errorf("idle %v: it is %+v after a tick", idle, c.Role())
		}
	}
	c := threeMembers(t, rand.New(rand.NewPCG(testseed.Of(t), 0)))
	c.Tick()
	process(t, c)
	if c.patience < electionTicks {
		t.Errorf("one of three waits %d ticks", c.patience)
	}
}

// TestElections: a member knows for what election it has stood last, why and who led before, and for whom it has voted.
func TestElections(t *testing.T) {
	c := threeMembers(t, rand.New(rand.NewPCG(testseed.Of(t), 0)))
	if got := c.Elections(); got != (Elections{}) {
		t.Errorf("before all: %+v", got)
	}
	elect(t, c)
	first := c.Role().Term
	if got := c.Elections(); got != (Elections{Stood: Stood{Term: first}}) {
		t.Errorf("it has missed a primary: %+v", got)
	}
	from := func(kind pb.MessageType, term uint64) *pb.Message {
		return &pb.Message{Type: kind.Enum(), From: proto.Uint64(2), To: proto.Uint64(1), Term: proto.Uint64(term), Index: proto.Uint64(c.end), LogTerm: proto.Uint64(first)}
	}
	vote := from(pb.MsgVote, first+1)
	vote.Context = []byte("CampaignTransfer") // so that it is heard although there is a primary
	c.Step(vote)
	process(t, c)
	want := Elections{Stood{Term: first}, Vote{first + 1, 2}}
	if got := c.Elections(); got != want {
		t.Errorf("it has voted: %+v, not %+v", got, want)
	}
	c.Step(from(pb.MsgHeartbeat, first+1))
	process(t, c)
	c.Step(from(pb.MsgTimeoutNow, first+1))
	process(t, c)
	want.Stood = Stood{Term: first + 2, Asked: true, Before: 2}
	if got := c.Elections(); got != want {
		t.Errorf("it was asked to stand: %+v, not %+v", got, want)
	}
}

// TestReluctant: a member that is to stand as a last resort does so where it has heard of no primary several times, one after the other, and not when it is asked to take over.
func TestReluctant(t *testing.T) {
	c := threeMembers(t, rand.New(rand.NewPCG(testseed.Of(t), 0)))
	c.SetIdle(false, true)
	stands := func() bool { return c.node.BasicStatus().RaftState != raft.StateFollower }
	from := func(kind pb.MessageType) *pb.Message {
		return &pb.Message{Type: kind.Enum(), From: proto.Uint64(2), To: proto.Uint64(1), Term: proto.Uint64(c.Role().Term + 1)}
	}
	c.Step(from(pb.MsgTimeoutNow))
	for range 2 {
		for range (lastResort - 1) * electionTicks {
			c.Tick()
		}
		process(t, c)
		if stands() {
			t.Fatal("it stands before it is the last resort")
		}
		c.Step(from(pb.MsgHeartbeat))
		process(t, c)
	}
	for range 2 * lastResort * electionTicks {
		c.Tick()
	}
	process(t, c)
	if !stands() {
		t.Error("it does not stand")
	}
}
