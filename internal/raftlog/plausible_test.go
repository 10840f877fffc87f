package raftlog

import (
	"encoding/binary"
	"log/slog"
	"math"
	"math/rand/v2"
	"testing"

	pb "go.etcd.io/raft/v3/raftpb"
	"google.golang.org/protobuf/proto"

	"github.com/ebbdb/ebb/internal/kv/crashdisk"
	"github.com/ebbdb/ebb/internal/testseed"
)

// TestForgedMessages: whatever somebody says who takes himself for a member, the member goes on: one that leads, and one that has followed. Only what
// contradicts what is committed ends it (TestContradiction), and changes nothing.
func TestForgedMessages(t *testing.T) {
	for name, lead := range map[string]bool{"leads": true, "follows": false} {
		t.Run(name, func(t *testing.T) {
			random := rand.New(rand.NewPCG(testseed.Of(t), 0))
			for range 40 {
				c := threeMembers(t, random)
				if lead {
					elect(t, c)
				}
				for range 500 {
					c.Step(forge(random, c))
					c.diverged = nil
					process(t, c)
					c.Tick()
					if random.IntN(10) == 0 {
						c.ReadIndex()
					}
				}
			}
		})
	}
}

// TestForgedAcknowledgement: the others cannot say that they have heard of reads that nobody asked about.
func TestForgedAcknowledgement(t *testing.T) {
	c := threeMembers(t, rand.New(rand.NewPCG(testseed.Of(t), 0)))
	elect(t, c)
	term := c.Role().Term
	c.Step(&pb.Message{Type: pb.MsgAppResp.Enum(), From: proto.Uint64(2), To: proto.Uint64(1), Term: proto.Uint64(term), Index: proto.Uint64(c.disk.last)})
	process(t, c)
	c.ReadIndex()
	process(t, c)
	if c.asked.context == 0 {
		t.Fatal("no read is asked about")
	}
	for from := uint64(2); from <= 3; from++ {
		c.Step(&pb.Message{Type: pb.MsgHeartbeatResp.Enum(), From: proto.Uint64(from), To: proto.Uint64(1), Term: proto.Uint64(term),
			Context: binary.LittleEndian.AppendUint64(nil, c.asked.context+100)})
		process(t, c)
	}
}

// threeMembers is the first of three, alone.
func threeMembers(t *testing.T, random *rand.Rand) *Core {
	return firstOf(t, random, Peers{{ID: 1}, {ID: 2}, {ID: 3}})
}

// firstOf is the member 1 of a new set.
func firstOf(t *testing.T, random *rand.Rand, peers Peers) *Core {
	disk, err := OpenDisk("raft", crashdisk.New(), nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = disk.Close() })
	disk.id = 1
	if err := disk.Begin(simSet, simSet, peers); err != nil {
		t.Fatal(err)
	}
	c, err := NewCore(disk, random, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// elect has the member lead, and append something.
func elect(t *testing.T, c *Core) {
	if err := c.Campaign(); err != nil {
		t.Fatal(err)
	}
	process(t, c)
	for _, kind := range []pb.MessageType{pb.MsgPreVoteResp, pb.MsgVoteResp} {
		term := c.node.BasicStatus().GetTerm()
		if kind == pb.MsgPreVoteResp {
			term++
		}
		c.Step(&pb.Message{Type: kind.Enum(), From: proto.Uint64(2), To: proto.Uint64(1), Term: proto.Uint64(term)})
		process(t, c)
	}
	if !c.Role().Leads {
		t.Fatal("it does not lead")
	}
	for range 5 {
		if ok, err := c.Propose(c.Role().Term, [][]byte{{kindCommit, 1}}); !ok || err != nil {
			t.Fatal(ok, err)
		}
		process(t, c)
	}
}

func process(t *testing.T, c *Core) {
	for c.HasReady() {
		if _, err := c.Process(); err != nil {
			t.Fatal(err)
		}
		for _, w := range c.Writes() {
			if err := c.disk.Put([]*Write{w}); err != nil {
				t.Fatal(err)
			}
			if _, err := c.Written(w); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// forge is a message in which nothing has to be true. It may only not be one by which a log is made that nobody could tell from a true one.
func forge(random *rand.Rand, c *Core) *pb.Message {
	number := func() *uint64 {
		near := c.disk.last + uint64(random.IntN(4))
		return proto.Uint64([]uint64{0, 1, 2, 3, near, near, near - min(near, 3), math.MaxUint64, math.MaxUint64 - 1, random.Uint64()}[random.IntN(10)])
	}
	term := c.node.BasicStatus().GetTerm()
	m := &pb.Message{Type: pb.MessageType(random.IntN(len(pb.MessageType_name) + 1)).Enum(), To: proto.Uint64(1), From: proto.Uint64(uint64(random.IntN(5))),
		Term:    proto.Uint64([]uint64{0, term, term, term, term, term + 1, term - min(term, 1), math.MaxUint64}[random.IntN(8)]),
		LogTerm: number(), Index: number(), Commit: number(), RejectHint: number(), Reject: proto.Bool(random.IntN(2) == 0), Context: make([]byte, random.IntN(2)*random.IntN(10))}
	if random.IntN(2) == 0 {
		m.Context = binary.LittleEndian.AppendUint64(nil, uint64(random.IntN(6)))
	}
	if random.IntN(4) == 0 {
		m.LogTerm = proto.Uint64(term)
	}
	for i := range random.IntN(4) {
		e := &pb.Entry{Index: proto.Uint64(m.GetIndex() + uint64(i) + 1), Term: proto.Uint64(term), Type: pb.EntryType(random.IntN(2) * random.IntN(3)).Enum(), Data: []byte{kindCommit, 7}}
		switch random.IntN(6) {
		case 0:
			e.Index = number()
		case 1:
			e.Term = number()
		case 2:
			e.Data = []byte{byte(random.IntN(4)), 0xFF}
		}
		if e.GetType() == pb.EntryConfChangeV2 {
			e.Data = []byte{0xFF, byte(random.IntN(256))}
		}
		m.Entries = append(m.Entries, e)
	}
	switch random.IntN(4) {
	case 0:
		m.Snapshot = &pb.Snapshot{Data: []byte{byte(random.IntN(256))}}
	case 1:
		m.Snapshot = &pb.Snapshot{Metadata: &pb.SnapshotMetadata{Index: number(), Term: number(), ConfState: &pb.ConfState{Voters: []uint64{1, 2, 3}}}}
	}
	return m
}
