package command

import "fmt"

// Durable is a store that says when what was committed to it is on stable storage; storage.Store is one.
type Durable interface {
	AwaitDurable(number uint64) error
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
