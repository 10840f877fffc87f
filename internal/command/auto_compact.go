package command

import (
	"math"
	"sync"

	"github.com/ebbdb/ebb/internal/auth/privilege"
	"github.com/ebbdb/ebb/internal/bson"
	"github.com/ebbdb/ebb/internal/mongoerr"
)

// defaultFreeSpaceMB is MongoDB's freeSpaceTargetMB.
const defaultFreeSpaceMB = 20

func autoCompactCommands() []*Command {
	return []*Command{
		{Name: "autoCompact", Needs: Needs{OnCluster: actions(privilege.Compact)}, Doc: "Turns compaction in the background on or off.", AdminOnly: true, Run: autoCompact},
	}
}

// autoCompaction is what was asked of compaction. The store compacts by itself all the time, whatever was asked; that is
// what "on" promises, and "off" promises nothing.
type autoCompaction struct {
	mu struct {
		sync.Mutex
		on     bool
		target int64
	}
}

func autoCompact(op *Op) (bson.Doc, error) {
	a := op.Args
	a.Required(op.Name())
	on := a.Bool(op.Name(), false)
	target, given := a.Int("freeSpaceTargetMB")
	once := a.Bool("runOnce", false)
	if err := a.Done(); err != nil {
		return nil, err
	}
	if !given {
		target = defaultFreeSpaceMB
	}
	if target < 1 {
		return nil, mongoerr.New(mongoerr.BadValue, "BSON field 'freeSpaceTargetMB' value must be >= 1, actual value '%d'", target)
	}
	if on && target > math.MaxInt64>>20 {
		return nil, mongoerr.New(mongoerr.BadValue, "freeSpaceTargetMB %d is more than can be counted in bytes", target)
	}
	return bson.EmptyDoc, op.compact.set(on, target, once)
}

func (c *autoCompaction) set(on bool, target int64, once bool) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if on && c.mu.on && target != c.mu.target {
		return mongoerr.New(mongoerr.AlreadyInitialized, "Auto-compact is already running with other options: turn it off first")
	}
	c.mu.on, c.mu.target = on && !once, target
	return nil
}
