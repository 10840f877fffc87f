package command

import (
	"github.com/ebbdb/ebb/internal/bson"
	"github.com/ebbdb/ebb/internal/mongoerr"
	"github.com/ebbdb/ebb/internal/replset"
)

// replicaSetCommands are what only a member of a replica set can do: a standalone refuses them as MongoDB's does.
func replicaSetCommands() []*Command {
	unreplicated := func(message string) func(*Op) (bson.Doc, error) {
		return func(*Op) (bson.Doc, error) { return nil, mongoerr.New(mongoerr.NoReplicationEnabled, "%s", message) }
	}
	const plain = "not running with --replSet"
	rows := []*Command{
		{Name: "replSetInitiate", Doc: "Begins a replica set.", Run: asMember(unreplicated("This node was not started with replication enabled."), replSetInitiate)},
		{Name: "replSetResizeOplog", Doc: "Changes the size of the oplog.", Run: asMember(func(*Op) (bson.Doc, error) {
			return nil, mongoerr.New(mongoerr.NamespaceNotFound, "oplog does not exist")
		}, replSetResizeOplog)},
		{Name: "appendOplogNote", Doc: "Writes a note into the oplog.", WriteConcern: true,
			Run: asMember(unreplicated("Must have replication set up to run \"appendOplogNote\""), appendOplogNote)},
		{Name: "setDefaultRWConcern", Doc: "Changes the read and write concern of those who say none.", WriteConcern: true, Run: setDefaultRWConcern},
		{Name: "getDefaultRWConcern", Doc: "Shows the read and write concern of those who say none.", Run: getDefaultRWConcern},
		{Name: "setUserWriteBlockMode", Doc: "Blocks the writes of users.", Run: setUserWriteBlockMode},
	}
	for _, member := range []struct {
		name, doc string
		run       func(*Op, *replset.View) (bson.Doc, error)
	}{
		{"replSetGetStatus", "Tells how the replica set is.", replSetGetStatus},
		{"replSetGetConfig", "Shows the configuration of the replica set.", replSetGetConfig},
		{"replSetReconfig", "Changes the configuration of the replica set.", replSetReconfig},
		{"replSetStepDown", "Makes the primary a secondary.", replSetStepDown},
		{"replSetStepUp", "Has the member be elected.", func(*Op, *replset.View) (bson.Doc, error) { return bson.EmptyDoc, nil }},
		{"replSetFreeze", "Keeps the member from being elected.", replSetFreeze},
		{"replSetMaintenance", "Takes a secondary out of use.", notAsPrimary(mongoerr.NotSecondary, "primaries can't modify maintenance mode")},
		{"replSetSyncFrom", "Says whom a secondary follows.", notAsPrimary(mongoerr.NotSecondary, "primaries don't sync")},
		{"replSetGetRBID", "Counts rollbacks.", func(*Op, *replset.View) (bson.Doc, error) { return bson.Build().Int32("rbid", 1).Doc(), nil }},
		{"replSetAbortPrimaryCatchUp", "Ends what a new primary catches up.", notAsPrimary(mongoerr.IllegalOperation, "The node is not in catch-up mode.")},
		{"replSetHeartbeat", "For members of replica sets.", noOtherMembers},
		{"replSetUpdatePosition", "For members of replica sets.", noOtherMembers},
		{"replSetRequestVotes", "For members of replica sets.", noOtherMembers},
	} {
		rows = append(rows, &Command{Name: member.name, Doc: member.doc, Run: asMember(unreplicated(plain), initiated(member.run))})
	}
	for _, c := range rows {
		c.AdminOnly = true
	}
	return rows
}

func noOtherMembers(op *Op, _ *replset.View) (bson.Doc, error) {
	return nil, mongoerr.New(mongoerr.IllegalOperation, "%s is for other members of the replica set, and there are none", op.Name())
}

func notOnStandalone(op *Op) error {
	return mongoerr.New(51300, "'%s' is not supported on standalone nodes.", op.Name())
}
