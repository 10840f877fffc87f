package command

import (
	"testing"
	"time"

	"github.com/ebbdb/ebb/internal/bson"
	"github.com/ebbdb/ebb/internal/replset"
)

// seenGroup is the Group of a member that has heard of others.
type seenGroup struct {
	noGroup
	others map[string]Health
}

func (g seenGroup) Leader() (string, int64, bool)         { return "c:1", 3, true }
func (g seenGroup) Health(host string) Health             { return g.others[host] }
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
	const want = `2 0.0 "(not reachable/healthy)" 0 "connection refused" 
5 1.0 "SECONDARY" "" "" 
7 1.0 "SECONDARY" 60 "" "the disk hangs: nothing that was to be written has come to its end for 8 seconds" 
9 1.0 "PRIMARY" 7 "" "" new Date(1000000000000) 
`
	if got != want {
		t.Errorf("%s\nnot\n%s", got, want)
	}
}
