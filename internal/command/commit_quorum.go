package command

import (
	"github.com/ebbdb/ebb/internal/auth/privilege"
	"github.com/ebbdb/ebb/internal/bson"
	"github.com/ebbdb/ebb/internal/index"
	"github.com/ebbdb/ebb/internal/mongoerr"
	"github.com/ebbdb/ebb/internal/namespace"
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

// checkCommitQuorum refuses a number of members that must have built an index, or a name for them, which is none or which the set does not have. What it
// has is not waited for: an index is there when a majority has it, as any write is.
func (op *Op) checkCommitQuorum(a *Args, ns namespace.NS) {
	v := a.Value("commitQuorum")
	if v.IsMissing() {
		return
	}
	if err := commitQuorum(v); err != nil {
		a.Fail(err)
		return
	}
	switch {
	case op.Replica == nil:
		a.Fail(mongoerr.New(mongoerr.BadValue, "Standalones can't specify commitQuorum"))
	case ns.DB == "local": // whose indexes each member of MongoDB's builds by itself
		a.Fail(mongoerr.New(mongoerr.BadValue, "commitQuorum is supported only for two phase index builds with commit quorum support enabled "))
	case v.Type == bson.TypeString && v.Str() == "votingMembers":
	default:
		asked := concernFields{w: v}
		if e := asked.impossible(op.Replica.View(), mongoerr.UnsatisfiableCommitQuorum); e != nil {
			a.Fail(e)
		}
	}
}

// commitQuorum refuses a value that is no commit quorum anywhere.
func commitQuorum(v bson.Value) error {
	switch {
	case v.IsNumber():
		if n := index.WholeSeconds(v); n < 0 || n > maxMembers {
			return mongoerr.New(mongoerr.FailedToParse, "commitQuorum has to be a non-negative number and not greater than %d", maxMembers)
		}
	case v.Type != bson.TypeString:
		return mongoerr.New(mongoerr.FailedToParse, "commitQuorum has to be a number or a string")
	case v.Str() == "":
		return mongoerr.New(mongoerr.FailedToParse, "commitQuorum can't be an empty string")
	}
	return nil
}
