package command

import (
	"github.com/ebbdb/ebb/internal/bson"
	"github.com/ebbdb/ebb/internal/mongoerr"
)

// transactionCommands end transactions. A standalone begins none, so that there is never one to end.
func transactionCommands() []*Command {
	return []*Command{
		{Name: "commitTransaction", Doc: "Makes all that was done in a transaction visible.", AdminOnly: true, WriteConcern: true, Run: outsideTransaction},
		{Name: "abortTransaction", Doc: "Makes all that was done in a transaction undone.", AdminOnly: true, WriteConcern: true, Run: outsideTransaction},
	}
}

func outsideTransaction(op *Op) (bson.Doc, error) {
	op.Args.Ignore(op.Name(), "recoveryToken", "commitTimestamp", "durableTimestamp")
	if err := op.Args.Done(); err != nil {
		return nil, err
	}
	return nil, mongoerr.New(mongoerr.CommandFailed, "%s must be run within a transaction", op.Name())
}
