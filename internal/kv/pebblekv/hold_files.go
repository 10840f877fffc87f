package pebblekv

import (
	"context"
	"time"

	"github.com/ebbdb/ebb/internal/clock"
	"github.com/ebbdb/ebb/internal/kv"
)

// holdPause is after how long it is looked again whether the tables that were under way are finished.
const holdPause = 10 * time.Millisecond

// HoldFiles is kv.Engine's. Flushes and compactions that have a table under way go on until they are done or would make another one; they
// change the manifest when they are done, and those that wait to make a table do not.
func (e *Engine) HoldFiles(ctx context.Context) error {
	if e.closed.Load() {
		return kv.ErrClosed
	}
	e.held.freeze()
	for !e.isStill() {
		if err := clock.Wait(ctx, clock.Wall(), holdPause); err != nil {
			e.held.thaw()
			return context.Cause(ctx)
		}
	}
	return nil
}

// isStill says whether who is about to change tables waits.
func (e *Engine) isStill() bool {
	m := e.db.Metrics()
	return int(m.Compact.NumInProgress+m.Flush.NumInProgress) <= e.held.waiting()
}

// ReleaseFiles is kv.Engine's.
func (e *Engine) ReleaseFiles() { e.held.thaw() }
