package raftlog

import (
	"bytes"
	"log/slog"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
	pb "go.etcd.io/raft/v3/raftpb"
	"google.golang.org/protobuf/proto"

	"github.com/ebbdb/ebb/internal/kv"
	"github.com/ebbdb/ebb/internal/testseed"
)

// appends is what member 2 appends as the primary of a term, behind an entry of another.
func appends(term, index, logTerm, commit uint64, terms ...uint64) *pb.Message {
	m := &pb.Message{Type: pb.MsgApp.Enum(), From: proto.Uint64(2), To: proto.Uint64(1), Term: &term, Index: &index, LogTerm: &logTerm, Commit: &commit}
	for i, t := range terms {
		m.Entries = append(m.Entries, &pb.Entry{Index: proto.Uint64(index + 1 + uint64(i)), Term: proto.Uint64(t), Data: []byte{kindCommit, 1}})
	}
	return m
}

// TestContradiction: a member ends when who leads has something else where it knows that the log is committed, whether raft told it or its store does. What
// is not committed gives way.
func TestContradiction(t *testing.T) {
	for what, c := range map[string]struct {
		commit, settled uint64
		then            *pb.Message
		ends            bool
	}{
		"entries in place of committed ones":       {5, 0, appends(3, 3, 2, 3, 3, 3), true},
		"entries behind another one":               {5, 0, appends(3, 5, 3, 3, 3), true},
		"entries in place of what the store has":   {1, 5, appends(3, 3, 2, 3, 3, 3), true},
		"the same entries again":                   {5, 0, appends(3, 3, 2, 5, 2, 2), false},
		"entries behind all":                       {5, 0, appends(3, 5, 2, 5, 3), false},
		"entries in place of what nobody knows of": {3, 0, appends(3, 3, 2, 3, 3, 3), false},
		"what a primary of before has sent":        {5, 0, appends(1, 3, 1, 3, 1), false},
	} {
		m := threeMembers(t, rand.New(rand.NewPCG(testseed.Of(t), 0)))
		m.Step(appends(2, firstIndex, 1, c.commit, 2, 2, 2, 2))
		process(t, m)
		m.Settle(c.settled)
		m.Step(c.then)
		switch {
		case !c.ends:
			process(t, m)
		case !m.HasReady():
			t.Errorf("%s: nothing happens", what)
		default:
			if _, err := m.Process(); err == nil || !strings.Contains(err.Error(), "which leads, has another one of term 3") {
				t.Errorf("%s: %v", what, err)
			}
		}
	}
}

// TestAhead: who leads tells, once, of a member that has committed more than it has.
func TestAhead(t *testing.T) {
	c := threeMembers(t, rand.New(rand.NewPCG(testseed.Of(t), 0)))
	elect(t, c)
	var log bytes.Buffer
	c.log = slog.New(slog.NewTextHandler(&log, nil))
	says := func(index uint64) {
		c.Step(&pb.Message{Type: pb.MsgAppResp.Enum(), From: proto.Uint64(3), To: proto.Uint64(1), Term: proto.Uint64(c.Role().Term), Index: &index})
		process(t, c)
	}
	says(c.end)
	if log.Len() > 0 {
		t.Errorf("a member has what this one has: %s", &log)
	}
	says(c.end + 7)
	says(c.end + 7)
	if n := strings.Count(log.String(), "has committed more of the log"); n != 1 {
		t.Errorf("it is told %d times: %s", n, &log)
	}
}

// TestStoreAheadOfLog: a log that ends before what the store has applied is refused, unless the store came as a snapshot.
func TestStoreAheadOfLog(t *testing.T) {
	fs := vfs.NewMem()
	d, err := OpenDisk("raft", fs, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { must(d.Close()) }()
	must(d.Begin(simSet, simSet, Peers{{ID: d.ID()}}))
	if index, err := d.foundStored(20); index != 0 || err != nil {
		t.Errorf("of a log that has begun behind the store: %d, %v", index, err)
	}
	for i := range uint64(10) {
		commit, err := (&kv.Commit{Number: 21 + i, Writes: &kv.WriteList{}}).AppendBinary([]byte{kindCommit})
		must(err)
		e := &pb.Entry{Index: proto.Uint64(firstIndex + 1 + i), Term: proto.Uint64(1), Data: commit}
		must(d.Put([]*Write{{entries: []*pb.Entry{e}, sync: true}}))
	}
	for number, want := range map[uint64]uint64{20: 0, 21: firstIndex + 1, 30: firstIndex + 10} {
		if index, err := d.foundStored(number); index != want || err != nil {
			t.Errorf("commit %d is entry %d, %v; want %d", number, index, err, want)
		}
	}
	if _, err := d.foundStored(31); err == nil || !strings.Contains(err.Error(), "the store has commit 31, and the log of the replica set ends with commit 30") {
		t.Errorf("a store that is ahead of its log: %v", err)
	}
	must(d.Installed())
	must(d.Close())
	if d, err = OpenDisk("raft", fs, nil); err != nil {
		t.Fatal(err)
	}
	for _, number := range []uint64{35, 34} { // the first is what the snapshot had
		if _, err := d.foundStored(number); err != nil {
			t.Errorf("a store that came as a snapshot: %v", err)
		}
	}
	if _, err := d.foundStored(36); err == nil {
		t.Error("a store is ahead of its log and of its snapshot")
	}
}
