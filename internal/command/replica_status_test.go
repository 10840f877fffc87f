package command

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/ebbdb/ebb/internal/bson"
	"github.com/ebbdb/ebb/internal/replset"
	"github.com/ebbdb/ebb/internal/storage/oplog"
)

// seenGroup is the Group of a member that has heard of others.
type seenGroup struct {
	noGroup
	others map[string]Health
	novice int64 // the _id of a member that has no vote yet
}

func (g seenGroup) Leader() (string, int64, bool)         { return "c:1", 3, true }
func (g seenGroup) Health(host string) Health             { return g.others[host] }
func (g seenGroup) Votes(member int64) bool               { return member != g.novice }
func (g seenGroup) Place(*replset.Config, func() int) int { return 0 }

// TestStatusOfOthers: replSetGetStatus tells of each member, in the order of their _ids, for how long it has been there, or why it is not, since when it leads, and
// whether its disk hangs.
func TestStatusOfOthers(t *testing.T) {
	h := newMember(t)
	c := replset.Default("rs", "a:1", [12]byte{1})
	c.Members = []replset.Member{replset.NewMember(5, "a:1"), replset.NewMember(2, "b:1"), replset.NewMember(9, "c:1"), replset.NewMember(7, "d:1")}
	h.server.ReplicaSet.Group = seenGroup{others: map[string]Health{
		"b:1": {Why: "connection refused"},
		"c:1": {Up: true, UpFor: 7 * time.Second, State: replset.Primary, ElectedAt: 1e12, Version: 1},
		"d:1": {Up: true, UpFor: time.Minute, State: replset.Secondary, Stalled: 8 * time.Second, Version: 1},
	}}
	h.server.Replica.Follow(replset.View{Config: c, Term: 3, Primary: "c:1", State: replset.Secondary})
	reply := h.send(t.Context(), "0", "admin", bson.MustDoc("{replSetGetStatus: 1}")).Body
	var got string
	for it := reply.Lookup("members").Doc().Iter(); it.Next(); {
		m := it.Value().Doc()
		for _, key := range []string{"_id", "health", "stateStr", "uptime", "lastHeartbeatMessage", "infoMessage", "electionDate"} {
			if v := m.Lookup(key); key == "uptime" && m.Lookup("self").Truthy() || v.IsMissing() {
				continue
			} else {
				got += v.String() + " "
			}
		}
		got += "\n"
	}
	const want = `2 0.0 "(not reachable/healthy)" 0 "connection refused" "" 
5 1.0 "SECONDARY" "" "" 
7 1.0 "SECONDARY" 60 "" "the disk hangs: nothing that was to be written has come to its end for 8 seconds" 
9 1.0 "PRIMARY" 7 "" "" new Date(1000000000000) 
`
	if got != want {
		t.Errorf("%s\nnot\n%s", got, want)
	}
}

// TestStatusCountsVotes: a member that was added counts among those who vote when it has its vote.
func TestStatusCountsVotes(t *testing.T) {
	h := newMember(t)
	c := replset.Default("rs", "a:1", [12]byte{1})
	c.Members = []replset.Member{replset.NewMember(0, "a:1"), replset.NewMember(1, "b:1"), replset.NewMember(2, "c:1"), replset.NewMember(3, "d:1")}
	c.Members[1].Votes, c.Members[1].Priority = 0, 0
	h.server.Replica.Follow(replset.View{Config: c, Term: 3, Primary: "c:1", State: replset.Secondary})
	for _, test := range []struct {
		novice int64
		want   string
	}{{novice: 3, want: "2 2 2 2"}, {novice: -1, want: "2 2 3 3"}} {
		h.server.ReplicaSet.Group = seenGroup{novice: test.novice}
		reply := h.send(t.Context(), "0", "admin", bson.MustDoc("{replSetGetStatus: 1}")).Body
		got := fmt.Sprintf("%v %v %v %v", reply.Lookup("majorityVoteCount"), reply.Lookup("writeMajorityCount"), reply.Lookup("votingMembersCount"), reply.Lookup("writableVotingMembersCount"))
		if got != test.want {
			t.Errorf("where %d has no vote yet: %s, not %s", test.novice, got, test.want)
		}
	}
}

// TestStatusOfMissing: of a member that is away the status has what it had last, in the fields of one that is there.
func TestStatusOfMissing(t *testing.T) {
	h := newMember(t)
	c := replset.Default("rs", "a:1", [12]byte{1})
	c.Members = []replset.Member{replset.NewMember(0, "a:1"), replset.NewMember(1, "b:1"), replset.NewMember(2, "c:1"), replset.NewMember(3, "d:1")}
	h.server.ReplicaSet.Group = seenGroup{others: map[string]Health{
		"b:1": {Why: "connection refused", SeenAt: 5000, Logged: oplog.Timestamp(4<<32 | 1), Term: 2, Version: 7},
		"c:1": {Up: true, State: replset.Secondary, SeenAt: 6000, Logged: oplog.Timestamp(6<<32 | 1), Term: 2, Version: 7},
		"d:1": {Why: "connection refused"},
	}}
	h.server.Replica.Follow(replset.View{Config: c, Term: 3, Primary: "a:1", State: replset.Secondary})
	members := h.send(t.Context(), "0", "admin", bson.MustDoc("{replSetGetStatus: 1}")).Body.Lookup("members").Doc()
	none := "{ ts: Timestamp(0, 0), t: -1 }"
	entry := "{ ts: Timestamp(6, 1), t: 2 }"
	for at, want := range map[string]string{
		"1": none + none + none + "000444-1 7",
		"2": entry + entry + entry + "6666660 7",
		"3": none + none + none + "000000-1 -1",
	} {
		m := members.Lookup(at).Doc()
		got := ""
		for _, key := range []string{"optime", "optimeDurable", "optimeWritten"} {
			got += m.Lookup(key).String()
		}
		for _, key := range []string{"optimeDate", "optimeDurableDate", "optimeWrittenDate", "lastAppliedWallTime", "lastDurableWallTime", "lastWrittenWallTime"} {
			got += fmt.Sprint(m.Lookup(key).Int64() / 1000)
		}
		got += fmt.Sprintf("%v %v", m.Lookup("syncSourceId"), m.Lookup("configVersion"))
		if got != want {
			t.Errorf("member %s: %s, not %s", at, got, want)
		}
	}
}

// TestStatusOfRemoved: a member that the configuration does not have says so in an error, and what it is.
func TestStatusOfRemoved(t *testing.T) {
	h := newMember(t)
	c := replset.Default("rs", "b:1", [12]byte{1})
	h.server.ReplicaSet.Group = seenGroup{}
	h.server.Replica.Follow(replset.View{Config: c, Self: -1, Term: 3})
	reply := h.send(t.Context(), "0", "admin", bson.MustDoc("{replSetGetStatus: 1}")).Body
	var got []string
	for it := reply.Iter(); it.Next(); {
		got = append(got, it.Key())
	}
	const want = "ok errmsg code codeName state stateStr uptime optime optimeWritten optimeDate optimeWrittenDate lastHeartbeatMessage syncSourceHost syncSourceId infoMessage"
	if text := strings.Join(got, " "); !strings.HasPrefix(text, want) || reply.Lookup("stateStr").Str() != "REMOVED" || reply.Lookup("code").Int32() != 93 {
		t.Errorf("%s", reply)
	}
}

// TestCommitmentStatusOfSecondary: only the primary knows whether a configuration is committed.
func TestCommitmentStatusOfSecondary(t *testing.T) {
	h := newMember(t)
	h.server.ReplicaSet.Group = seenGroup{}
	c := replset.Default("rs", "a:1", [12]byte{1})
	c.Members = append(c.Members, replset.NewMember(1, "b:1")) // the only member of a set has itself elected
	h.server.Replica.Follow(replset.View{Config: c, Term: 3, State: replset.Secondary})
	for command, code := range map[string]int32{"{replSetGetConfig: 1}": 0, "{replSetGetConfig: 1, commitmentStatus: false}": 0, "{replSetGetConfig: 1, commitmentStatus: true}": 10107} {
		if reply := h.send(t.Context(), "0", "admin", bson.MustDoc(command)).Body; code == 0 && !reply.Lookup("code").IsMissing() || code != 0 && reply.Lookup("code").Int32() != code {
			t.Errorf("%s: %s", command, reply)
		}
	}
}
