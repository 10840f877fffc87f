package command

import (
	"context"
	"time"

	"github.com/ebbdb/ebb/internal/bson"
	"github.com/ebbdb/ebb/internal/clock"
	"github.com/ebbdb/ebb/internal/cursor"
	"github.com/ebbdb/ebb/internal/mongoerr"
)

// awaitPatience is how long a getMore waits for new documents when it does not say.
const awaitPatience = time.Second

// awaitBatch reads a batch, and when there is nothing to read waits until there is: for as long as the getMore says by its
// maxTimeMS, which for such a cursor is no limit of the operation.
func (op *Op) awaitBatch(c *cursor.Cursor, b *bson.Builder, limit int64) (more bool, err error) {
	patience := awaitPatience
	if op.Args.Has("maxTimeMS") {
		if patience, err = maxTimeMS(op.Args.Value("maxTimeMS")); err != nil {
			return false, err
		}
	}
	timer := op.Clock.NewTimer(patience)
	defer timer.Stop()
	before, _ := c.Returned()
	for {
		inserted, mayCome := c.Inserted()
		if more, err = c.Batch(op.Ctx, b, limit, op.ReplyMemory); err != nil || !more {
			return false, err
		}
		if after, _ := c.Returned(); after > before || !mayCome || patience == 0 {
			return true, nil
		}
		c.Source.Park()
		if waited, err := op.awaitInserts(c, inserted, timer); waited || err != nil {
			return err == nil, err
		}
	}
}

// awaitInserts waits for inserts; over says that it was waited for long enough.
func (op *Op) awaitInserts(c *cursor.Cursor, inserted <-chan struct{}, timer clock.Timer) (over bool, err error) {
	select {
	case <-inserted:
		return false, nil
	case <-timer.C():
		return true, nil
	case <-c.Ended():
		return false, op.Cursors.Why(c)
	case <-op.Stopping:
		return false, mongoerr.New(mongoerr.InterruptedAtShutdown, "interrupted at shutdown")
	case <-op.Ctx.Done():
		return false, context.Cause(op.Ctx)
	}
}
