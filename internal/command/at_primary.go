package command

import (
	"bytes"
	"slices"

	"github.com/ebbdb/ebb/internal/auth/privilege"
	"github.com/ebbdb/ebb/internal/bson"
	"github.com/ebbdb/ebb/internal/catalog"
	"github.com/ebbdb/ebb/internal/mongoerr"
	"github.com/ebbdb/ebb/internal/replset"
	"github.com/ebbdb/ebb/internal/storage/oplog"
)

// isForPrimary says whether a secondary has the primary do what it was asked: drivers send it a pipeline that ends with $out or $merge where their
// read preference lets secondaries answer.
func (op *Op) isForPrimary() bool {
	return op.Replica != nil && op.Command.Name == "aggregate" && op.secondaryOK && !op.multi && op.DB != "local" &&
		op.Replica.View().State == replset.Secondary && op.grouped() && op.writesItsResult() && !op.dependsOnUser()
}

// dependsOnUser says whether what a pipeline gives may be another for another user: the primary runs what it gets from a member as that member's.
func (op *Op) dependsOnUser() bool {
	if !op.Authorization {
		return false
	}
	if op.Args.Document().Lookup("aggregate").Type != bson.TypeString { // of no collection: of operations, sessions and the like
		return true
	}
	roles := []byte("USER_ROLES")
	return bytes.Contains(op.Args.Document(), roles) || slices.ContainsFunc(op.Query.Store.Catalog().All(), func(c *catalog.Collection) bool {
		return c.IsView() && bytes.Contains(c.Options.Pipeline, roles)
	})
}

// ownFields are what a command says that is between the client and this member.
var ownFields = []string{"$db", "$readPreference", "lsid"}

// atPrimary has the primary run the command, for a user who may, and returns its reply when this member has what was written. No cursor is left there:
// the reply of such a pipeline has no documents.
func (op *Op) atPrimary() (bson.Doc, error) {
	if op.writesBlocked.Load() != nil {
		if err := op.checkCommandBlocked(); err != nil {
			return nil, err
		}
	}
	host, _, _ := op.ReplicaSet.Group.Leader()
	if host == "" {
		return nil, mongoerr.New(mongoerr.NotWritablePrimary, "not primary")
	}
	b := bson.Build()
	for it := op.Args.Document().Iter(); it.Next(); {
		key, v := it.Key(), it.Value()
		switch {
		case slices.Contains(ownFields, key):
		case key == "$clusterTime" && !op.May(privilege.Cluster(), privilege.AdvanceClusterTime): // as a member's it would be heard
		case key == "cursor" && v.Type == bson.TypeObject && v.Doc().Lookup("batchSize").IsNumber() && !v.Doc().Lookup("batchSize").Truthy():
			b.Document("cursor", bson.EmptyDoc) // the client would ask this member for what follows
		default:
			b.Value(key, v)
		}
	}
	reply, err := op.ReplicaSet.Group.Ask(op.Ctx, host, b.String("$db", op.DB).Doc())
	if err != nil {
		return nil, err
	}
	if at := reply.Lookup("operationTime"); at.Type == bson.TypeTimestamp {
		written := oplog.NewTimestamp(at.Timestamp())
		has := func() bool {
			return written <= op.Query.Store.LastLogged() || op.Replica.View().State != replset.Secondary
		}
		if err := op.ReplicaSet.Group.AwaitApplied(op.Ctx, has); err != nil {
			return nil, err
		}
	}
	b = bson.Build()
	for it := reply.Iter(); it.Next(); {
		if key := it.Key(); key != "ok" && key != "operationTime" && key != "$clusterTime" {
			b.Value(key, it.Value())
		}
	}
	return b.Doc(), nil
}
