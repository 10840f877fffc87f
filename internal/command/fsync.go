package command

import (
	"context"
	"errors"
	"time"

	"github.com/ebbdb/ebb/internal/auth/privilege"
	"github.com/ebbdb/ebb/internal/bson"
	"github.com/ebbdb/ebb/internal/clock"
	"github.com/ebbdb/ebb/internal/kv"
	"github.com/ebbdb/ebb/internal/mongoerr"
)

// defaultLockPatience is how long fsync waits for writers to leave.
const defaultLockPatience = 90 * time.Second

func fsyncCommands() []*Command {
	return []*Command{
		{Name: "fsync", Needs: Needs{OnCluster: actions(privilege.Fsync)}, Doc: "Makes all writes durable, and holds further ones up when asked to.", AdminOnly: true, Run: fsync},
		{Name: "fsyncUnlock", Needs: Needs{OnCluster: actions(privilege.Unlock)}, Doc: "Lets writes go on after an fsync with lock.", AdminOnly: true, Run: fsyncUnlock},
		{Name: "lockInfo", Needs: Needs{OnCluster: actions(privilege.ServerStatus)}, Doc: "Shows the locks that are held.", AdminOnly: true, Run: lockInfo},
	}
}

func fsync(op *Op) (bson.Doc, error) {
	a := op.Args
	a.Ignore(op.Name())
	lock := a.SafeBool("lock", false)
	patience := defaultLockPatience
	if v, ok := a.typed("fsyncLockAcquisitionTimeoutMillis", bson.TypeInt32); ok {
		patience = time.Duration(max(v.Int32(), 1)) * time.Millisecond
	}
	if err := a.Done(); err != nil {
		return nil, err
	}
	if !lock {
		return bson.Build().Int32("numFiles", 1).Doc(), op.syncStore()
	}
	locks, err := op.lockWrites(patience)
	if err != nil {
		return nil, err
	}
	if err := op.syncStore(); err != nil {
		op.Writes.Open()
		return nil, err
	}
	if err := op.holdFiles(patience); err != nil {
		op.Writes.Open()
		return nil, err
	}
	op.Log.Warn("instance is locked, blocking all writes. The fsync command has finished execution, remember to unlock the instance using fsyncUnlock().", "lockCount", locks)
	return bson.Build().String("info", "now locked against writes, use db.fsyncUnlock() to unlock").Int64("lockCount", locks).
		String("seeAlso", "http://dochub.mongodb.org/core/fsynccommand").Doc(), nil
}

func (op *Op) lockWrites(patience time.Duration) (locks int64, err error) {
	ctx, cancel := clock.WithTimeout(op.Ctx, op.Clock, patience)
	defer cancel()
	locks, err = op.Writes.Shut(ctx)
	if errors.Is(err, context.DeadlineExceeded) && op.Ctx.Err() == nil {
		return 0, mongoerr.New(mongoerr.LockTimeout, "Fsync lock timed out: writes were still under way after %d ms", patience.Milliseconds())
	}
	return locks, err
}

// holdFiles has the store's files stay as they are, for who copies them. A member of a set of several goes on to apply what the primary writes, or to note its
// time, and needs tables for it: there a lock holds up who writes, and no file.
func (op *Op) holdFiles(patience time.Duration) error {
	if op.Durable == nil || op.grouped() {
		return nil
	}
	ctx, cancel := clock.WithTimeout(op.Ctx, op.Clock, patience)
	defer cancel()
	err := op.Durable.HoldFiles(ctx)
	switch {
	case err == nil:
		op.filesHeld.Add(1)
	case errors.Is(err, context.DeadlineExceeded) && op.Ctx.Err() == nil:
		return mongoerr.New(mongoerr.LockTimeout, "Fsync lock timed out: tables were still being written after %d ms", patience.Milliseconds())
	}
	return err
}

// releaseFiles ends one holdFiles that there was.
func (s *Server) releaseFiles() (ok bool) {
	for n := s.filesHeld.Load(); n > 0; n = s.filesHeld.Load() {
		if s.filesHeld.CompareAndSwap(n, n-1) {
			s.Durable.ReleaseFiles()
			return true
		}
	}
	return false
}

// syncStore makes every commit that returned durable.
func (s *Server) syncStore() error {
	if s.Durable == nil {
		return nil
	}
	return s.Durable.AwaitDurable(kv.AllCommits)
}

func fsyncUnlock(op *Op) (bson.Doc, error) {
	locks, ok := op.Writes.Open()
	if !ok {
		return nil, mongoerr.New(mongoerr.IllegalOperation, "fsyncUnlock called when not locked")
	}
	op.releaseFiles()
	op.Log.Info("fsyncUnlock completed", "lockCount", locks)
	op.wakeSweep()
	return bson.Build().String("info", "fsyncUnlock completed").Int64("lockCount", locks).Doc(), nil
}

// lockInfo shows the one lock that stands beside single operations.
// pendingLocks appends the writers that wait.
func (op *Op) pendingLocks(b *bson.Builder) {
	n := 0
	for _, o := range op.Ops.Running() {
		if !o.Stats.WaitingForLock.Load() {
			continue
		}
		b.Object(bson.IndexKey(n)).String("mode", "IX").Bool("convertMode", false).Bool("enqueueAtFront", false).Bool("compatibleFirst", false).
			String("debugInfo", "").Object("clientInfo").String("desc", o.Client.Desc).Int64("connectionId", o.Client.ConnectionID).
			Int64("opid", o.ID).End().End()
		n++
	}
}

func lockInfo(op *Op) (bson.Doc, error) {
	if err := op.noArguments(); err != nil {
		return nil, err
	}
	b := bson.Build().Array("lockInfo")
	if op.Writes.Locks() > 0 {
		b.Object("0").String("resourceId", "{2305843009213693953: Global, 1}").
			Array("granted").Object("0").String("mode", "S").Bool("convertMode", false).Bool("enqueueAtFront", false).
			Bool("compatibleFirst", true).String("debugInfo", "fsyncLockWorker").End().End().
			Array("pending")
		op.pendingLocks(b)
		b.End().End()
	}
	return b.End().Doc(), nil
}
