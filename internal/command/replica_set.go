package command

import (
	"slices"

	"github.com/ebbdb/ebb/internal/bson"
	"github.com/ebbdb/ebb/internal/mongoerr"
)

// replicaSetCommands are what only a member of a replica set can do: a standalone refuses them as MongoDB's does.
func replicaSetCommands() []*Command {
	unreplicated := func(message string) func(*Op) (bson.Doc, error) {
		return func(*Op) (bson.Doc, error) { return nil, mongoerr.New(mongoerr.NoReplicationEnabled, "%s", message) }
	}
	const plain = "not running with --replSet"
	rows := []*Command{
		{Name: "replSetInitiate", Doc: "Begins a replica set.", Run: unreplicated("This node was not started with replication enabled.")},
		{Name: "replSetResizeOplog", Doc: "Changes the size of the oplog.", Run: func(*Op) (bson.Doc, error) {
			return nil, mongoerr.New(mongoerr.NamespaceNotFound, "oplog does not exist")
		}},
		{Name: "appendOplogNote", Doc: "Writes a note into the oplog.", WriteConcern: true,
			Run: unreplicated("Must have replication set up to run \"appendOplogNote\"")},
		{Name: "setDefaultRWConcern", Doc: "Changes the read and write concern of those who say none.", WriteConcern: true, Run: setDefaultRWConcern},
		{Name: "getDefaultRWConcern", Doc: "Shows the read and write concern of those who say none.", Run: getDefaultRWConcern},
		{Name: "setUserWriteBlockMode", Doc: "Blocks the writes of users.", Run: setUserWriteBlockMode},
	}
	for _, name := range []string{"replSetGetStatus", "replSetGetConfig", "replSetReconfig", "replSetStepDown", "replSetStepUp", "replSetFreeze",
		"replSetMaintenance", "replSetSyncFrom", "replSetGetRBID", "replSetAbortPrimaryCatchUp", "replSetHeartbeat", "replSetUpdatePosition",
		"replSetRequestVotes"} {
		rows = append(rows, &Command{Name: name, Doc: "For members of replica sets.", Run: unreplicated(plain)})
	}
	for _, c := range rows {
		c.AdminOnly = true
	}
	return rows
}

func notOnStandalone(op *Op) error {
	return mongoerr.New(51300, "'%s' is not supported on standalone nodes.", op.Name())
}

func getDefaultRWConcern(op *Op) (bson.Doc, error) {
	op.Args.Ignore(op.Name())
	op.Args.Bool("inMemory", false)
	if err := op.Args.Done(); err != nil {
		return nil, err
	}
	return nil, notOnStandalone(op)
}

func setDefaultRWConcern(op *Op) (bson.Doc, error) {
	op.Args.Ignore(op.Name())
	op.Args.Doc("defaultReadConcern")
	op.Args.Doc("defaultWriteConcern")
	if err := op.Args.Done(); err != nil {
		return nil, err
	}
	return nil, notOnStandalone(op)
}

func setUserWriteBlockMode(op *Op) (bson.Doc, error) {
	a := op.Args
	a.Ignore(op.Name())
	a.Required("global")
	a.Bool("global", false)
	reason, given := a.String("reason")
	if given && !slices.Contains([]string{"Unspecified", "ClusterToClusterMigrationInProgress", "DiskUseThresholdExceeded"}, reason) {
		a.Fail(mongoerr.New(mongoerr.BadValue, "Enumeration value '%s' for field 'setUserWriteBlockMode.reason' is not a valid value.", reason))
	}
	if err := a.Done(); err != nil {
		return nil, err
	}
	return nil, mongoerr.New(mongoerr.IllegalOperation, "setUserWriteBlockMode cannot be run on standalones")
}
