package command

import (
	"github.com/ebbdb/ebb/internal/auth/privilege"
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
		{Name: "replSetInitiate", Needs: Needs{OnCluster: actions(privilege.ReplSetConfigure)}, Doc: "Begins a replica set.", Run: asMember(unreplicated("This node was not started with replication enabled."), replSetInitiate)},
		{Name: "replSetResizeOplog", Needs: Needs{OnCluster: actions(privilege.ReplSetResizeOplog)}, Doc: "Changes the size of the oplog.", Run: asMember(func(*Op) (bson.Doc, error) {
			return nil, mongoerr.New(mongoerr.NamespaceNotFound, "oplog does not exist")
		}, replSetResizeOplog)},
		{Name: "appendOplogNote", Needs: Needs{OnCluster: actions(privilege.AppendOplogNote)}, Doc: "Writes a note into the oplog.", WriteConcern: true,
			Run: asMember(unreplicated("Must have replication set up to run \"appendOplogNote\""), appendOplogNote)},
		{Name: "setDefaultRWConcern", Needs: Needs{OnCluster: actions(privilege.SetDefaultRWConcern)}, Doc: "Changes the read and write concern of those who say none.", WriteConcern: true, Run: setDefaultRWConcern},
		{Name: "getDefaultRWConcern", Needs: Needs{OnCluster: actions(privilege.GetDefaultRWConcern)}, Doc: "Shows the read and write concern of those who say none.", Run: getDefaultRWConcern},
		{Name: "setUserWriteBlockMode", Needs: Needs{OnCluster: actions(privilege.SetUserWriteBlockMode)}, Doc: "Blocks the writes of users.", Run: setUserWriteBlockMode},
	}
	for _, member := range []struct {
		name, doc string
		needs     privilege.Action
		run       func(*Op, *replset.View) (bson.Doc, error)
	}{
		{"replSetGetStatus", "Tells how the replica set is.", privilege.ReplSetGetStatus, replSetGetStatus},
		{"replSetGetConfig", "Shows the configuration of the replica set.", privilege.ReplSetGetConfig, replSetGetConfig},
		{"replSetReconfig", "Changes the configuration of the replica set.", privilege.ReplSetConfigure, replSetReconfig},
		{"replSetStepDown", "Makes the primary a secondary.", privilege.ReplSetStateChange, replSetStepDown},
		{"replSetStepUp", "Has the member be elected.", privilege.ReplSetStateChange, replSetStepUp},
		{"replSetFreeze", "Keeps the member from being elected.", privilege.ReplSetStateChange, replSetFreeze},
		{"replSetMaintenance", "Takes a secondary out of use.", privilege.ReplSetStateChange, ofSecondaries("primaries can't modify maintenance mode", "a member has no maintenance mode: what keeps clients from it is hidden: true in the configuration")},
		{"replSetSyncFrom", "Says whom a secondary follows.", privilege.ReplSetStateChange, ofSecondaries("primaries don't sync", "a member gets everything from the primary, and nobody else")},
		{"replSetGetRBID", "Counts rollbacks.", privilege.Internal, func(*Op, *replset.View) (bson.Doc, error) { return bson.Build().Int32("rbid", 1).Doc(), nil }},
		{"replSetAbortPrimaryCatchUp", "Ends what a new primary catches up.", privilege.ReplSetStateChange, abortPrimaryCatchUp},
		{"replSetHeartbeat", "For members of replica sets.", privilege.Internal, notSpoken},
		{"replSetUpdatePosition", "For members of replica sets.", privilege.Internal, notSpoken},
		{"replSetRequestVotes", "For members of replica sets.", privilege.Internal, notSpoken},
	} {
		rows = append(rows, &Command{Name: member.name, Doc: member.doc, Needs: Needs{OnCluster: actions(member.needs)}, Run: asMember(unreplicated(plain), initiated(member.run))})
	}
	for _, c := range rows {
		c.AdminOnly = true
	}
	return rows
}

func notSpoken(op *Op, _ *replset.View) (bson.Doc, error) {
	return nil, mongoerr.New(mongoerr.IllegalOperation, "%s is for members of MongoDB's replica sets: those of Ebb's speak another way", op.Name())
}

func notOnStandalone(op *Op) error {
	return mongoerr.New(51300, "'%s' is not supported on standalone nodes.", op.Name())
}
