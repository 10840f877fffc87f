package command

import "fmt"

// awaitDurable sees to it that what the command has committed is on stable storage before the reply says so. All of its commits
// share one sync. With later, where that is still to come, the reply is pending: the connection is Finish's from then on, and
// may be so before awaitDurable returns.
func (op *Op) awaitDurable(later func()) (pending bool) {
	if !op.wrote {
		return false
	}
	if later != nil {
		op.later = later
		return op.Query.Store.Engine().AfterSync(op.Conn.synced)
	}
	op.durable(op.syncStore())
	return false
}

// durable takes note of how the sync went. Nobody knows what becomes of the commits when it failed.
func (op *Op) durable(err error) {
	if err != nil {
		op.body, op.err = nil, fmt.Errorf("wait for the disk: %w", err)
	}
}

// afterSync makes the function that a sync calls for the command under way.
func (c *Conn) afterSync() func(error) {
	return func(err error) {
		c.op.durable(err)
		c.op.later()
	}
}
