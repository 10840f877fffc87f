package command

import (
	"context"
	"testing"
	"time"

	"github.com/ebbdb/ebb/internal/kv"
	"github.com/ebbdb/ebb/internal/mongoerr"
)

// holdingEngine counts who has its files held.
type holdingEngine struct {
	kv.Engine
	held int
	// busy, unless nil, says that tables are under way for as long as anybody waits, and is told when somebody does.
	busy chan struct{}
}

func (e *holdingEngine) HoldFiles(ctx context.Context) error {
	if e.busy != nil {
		close(e.busy)
		<-ctx.Done()
		return context.Cause(ctx)
	}
	e.held++
	return nil
}

func (e *holdingEngine) ReleaseFiles() { e.held-- }

// TestFsyncHoldsFiles: files are held for as long as fsync locks, and no longer than the server works.
func TestFsyncHoldsFiles(t *testing.T) {
	files := &holdingEngine{}
	h := newHarnessOn(t, func(e kv.Engine) kv.Engine { files.Engine = e; return files })
	expect := func(command string, held int) {
		t.Helper()
		h.must("1", "admin", command)
		if files.held != held {
			t.Errorf("%s: files are held %d times, and should be %d times", command, files.held, held)
		}
	}
	expect("{fsync: 1}", 0)
	expect("{fsync: 1, lock: true}", 1)
	expect("{fsync: 1, lock: true}", 2)
	expect("{fsyncUnlock: 1}", 1)
	expect("{fsyncUnlock: 1}", 0)
	files.busy = make(chan struct{})
	waiting := h.start("1", "admin", "{fsync: 1, lock: true, fsyncLockAcquisitionTimeoutMillis: 1000}")
	<-files.busy
	h.clock.Advance(time.Second)
	wantCode(t, <-waiting, mongoerr.LockTimeout)
	if h.server.Writes.Locks() != 0 {
		t.Error("the server is locked")
	}
	files.busy = nil
	expect("{fsync: 1, lock: true}", 1)
	h.server.Close()
	if files.held != 0 {
		t.Error("files are held when the server has ended")
	}
}
