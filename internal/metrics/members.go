package metrics

import (
	"context"

	"github.com/ebbdb/ebb/internal/bson"
)

// memberFigures are those of each member of a replica set, as this one sees it, and of what they are together.
func memberFigures() (f struct{ up, state, lag, all, primary figure }) {
	of := []string{"member"}
	f.up = figure{"ebb_replica_set_member_up", "Whether the member answers.", of, false}
	f.state = figure{"ebb_replica_set_member_state", "What the member is, by MongoDB's numbers: 1 primary, 2 secondary, 8 does not answer.", of, false}
	f.lag = figure{"ebb_replica_set_member_lag_seconds", "How much later the latest write that is known of was than the member's, to the second. Of members that answer.", of, false}
	f.all = figure{"ebb_replica_set_members", "Members of the replica set.", nil, false}
	f.primary = figure{"ebb_replica_set_has_primary", "Whether this member knows of a primary.", nil, false}
	return f
}

// members tells of the replica set, where there is one that has begun. status is the reply of serverStatus.
func (t teller) members(ctx context.Context, c Commands, status bson.Doc) {
	if status.Lookup("repl").Type != bson.TypeObject {
		return
	}
	reply, err := run(ctx, c, bson.Build().Int32("replSetGetStatus", 1).String("$db", "admin").Doc())
	if err != nil {
		return // it has not begun, or this server was removed: what serverStatus says of it is all there is
	}
	f := memberFigures()
	latest, n, primary := int64(0), 0, false
	members := reply.Lookup("members")
	if members.Type != bson.TypeArray {
		return
	}
	for it := members.Doc().Iter(); it.Next(); {
		m := it.Value().Doc()
		latest = max(latest, writtenAt(m))
		primary = primary || m.Lookup("state").TruncInt64() == primaryState
		n++
	}
	for it := members.Doc().Iter(); it.Next(); {
		m := it.Value().Doc()
		name, up := label(textOf(m.Lookup("name"))), m.Lookup("health").AsDouble() == 1
		t.tell(f.up, number(up), name)
		t.tell(f.state, m.Lookup("state").AsDouble(), name)
		if up {
			t.tell(f.lag, float64(latest-writtenAt(m))/1000, name)
		}
	}
	t.tell(f.all, float64(n))
	t.tell(f.primary, number(primary))
}

// primaryState is MongoDB's number of a primary.
const primaryState = 1

// writtenAt is when a member's latest write was, in milliseconds since the epoch.
func writtenAt(member bson.Doc) int64 {
	if v := member.Lookup("optimeDate"); v.Type == bson.TypeDate {
		return v.Millis()
	}
	return 0
}

func textOf(v bson.Value) string {
	if v.Type != bson.TypeString {
		return ""
	}
	return v.Str()
}
