package command

import (
	"context"
	"fmt"
)

// Durable is a store that says when what was committed to it is on stable storage, and has its files stay as they are for who copies them; storage.Store
// is one.
type Durable interface {
	AwaitDurable(number uint64) error
	HoldFiles(ctx context.Context) error
	ReleaseFiles()
}

// tellsDurable has the reply wait until all that the command may have read is on stable storage: a change stream, and a read of what a
// majority has, tell nothing that a crash could take back.
func (op *Op) tellsDurable() { op.committed = max(op.committed, op.Query.Store.LastCommit()) }

// readsDurable says whether the read concern asks for what is on stable storage.
func (op *Op) readsDurable() bool {
	if op.Replica == nil || !op.ReadConcern.Given {
		return false
	}
	switch op.ReadConcern.Level {
	case "majority", "linearizable", "snapshot":
		return true
	}
	return false
}

// confirms says whether the command is a write that has written nothing, or the commit of a transaction that has not. What it has seen, and its
// reply tells of, has to stay as a write of its own would.
func (op *Op) confirms() bool {
	if op.Replica == nil || op.committed != 0 || op.WriteConcern.Buffered || !op.Command.writes() {
		return false
	}
	return !op.multi || op.Command.Name == "commitTransaction"
}

// awaitDurable returns when what the command has committed is on stable storage, so that the reply may say so. All of its commits
// share one sync, with those of other commands.
func (op *Op) awaitDurable() {
	if op.committed == 0 {
		return
	}
	if err := op.Durable.AwaitDurable(op.committed); err != nil { // nobody knows what becomes of the commits
		op.body, op.err = nil, fmt.Errorf("wait for the disk: %w", err)
	}
}
