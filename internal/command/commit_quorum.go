package command

import (
	"github.com/ebbdb/ebb/internal/auth/privilege"
	"github.com/ebbdb/ebb/internal/bson"
	"github.com/ebbdb/ebb/internal/mongoerr"
)

func commitQuorumCommands() []*Command {
	return []*Command{
		{Name: "setIndexCommitQuorum", Needs: Needs{OnCollection: actions(privilege.CreateIndex)}, Doc: "Changes how many members must have built an index.", WriteConcern: true, Run: setIndexCommitQuorum},
	}
}

// setIndexCommitQuorum never finds an index that is being built by a quorum: there are no other members.
func setIndexCommitQuorum(op *Op) (bson.Doc, error) {
	a := op.Args
	ns := a.Collection(op.DB)
	a.Array("indexNames")
	a.Ignore("commitQuorum")
	a.Required("indexNames", "commitQuorum")
	if err := a.Done(); err != nil {
		return nil, err
	}
	return nil, mongoerr.New(mongoerr.IndexNotFound, "Cannot find an index build on collection '%s' with the provided index names", ns)
}
