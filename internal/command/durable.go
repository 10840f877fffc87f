package command

import "fmt"

// awaitDurable returns when what the command has committed is on stable storage, so that the reply may say so. All of its commits
// share one sync, with those of other commands.
func (op *Op) awaitDurable() {
	if !op.wrote {
		return
	}
	if err := op.syncStore(); err != nil { // nobody knows what becomes of the commits
		op.body, op.err = nil, fmt.Errorf("wait for the disk: %w", err)
	}
}
