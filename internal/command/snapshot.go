package command

import (
	"time"

	"github.com/ebbdb/ebb/internal/bson"
	"github.com/ebbdb/ebb/internal/clock"
	"github.com/ebbdb/ebb/internal/storage"
	"github.com/ebbdb/ebb/internal/storage/oplog"
)

// A read of the level "snapshot" outside of transactions tells the cluster time that it is as of. Who says that time finds the same
// again, for minSnapshotHistoryWindowInSeconds (storage.Past).

// snapshotWindow is for how long it does, in milliseconds.
func (s *Server) snapshotWindow() int64 { return s.setting(snapshotWindowName) * 1000 }

const snapshotWindowName = "minSnapshotHistoryWindowInSeconds"

// openSnapshot is the state that the read concern asks for.
func (op *Op) openSnapshot() (*storage.Past, error) {
	store := op.Query.Store
	store.ForgetPasts(op.snapshotWindow())
	if op.at == 0 {
		return store.Remember(op.Ctx, op.Now)
	}
	if op.follows() {
		if err := op.awaitSnapshot(); err != nil {
			return nil, err
		}
	} else if now := op.clusterTime(); op.at > now {
		return nil, timeToCome("atClusterTime", op.at, now)
	}
	return store.Recall(op.Ctx, op.at, op.Now)
}

// awaitSnapshot returns when a member that follows has the entries up to the time that the read is as of. Meanwhile it holds what there is: that is the
// state of the time, should the next entry be later. A primary tells times that no entry has, so that it is asked for one that is later.
func (op *Op) awaitSnapshot() error {
	store := op.Query.Store
	var failed error
	hold := func() {
		if failed == nil && store.LastLogged() < op.at {
			_, failed = store.Remember(op.Ctx, op.Now)
		}
	}
	soon, cancel := clock.WithTimeout(op.Ctx, clock.Wall(), noteDelay)
	defer cancel()
	err := op.awaitApplied(soon, "atClusterTime", op.at, hold)
	if err != nil && soon.Err() != nil && op.Ctx.Err() == nil {
		op.askForNote()
		err = op.awaitApplied(op.Ctx, "atClusterTime", op.at, hold)
	}
	if err == nil {
		err = failed
	}
	return err
}

// noteDelay is how long a secondary waits for an entry before it asks the primary for one: mongod's waitForSecondaryBeforeNoopWriteMS.
const noteDelay = 10 * time.Millisecond

// askForNote has the primary write an entry, if it can be reached. Where it cannot, there may be another one soon, which writes one of its own accord.
func (op *Op) askForNote() {
	host, _, _ := op.ReplicaSet.Group.Leader()
	if host == "" {
		return
	}
	note := bson.Build().Int32("appendOplogNote", 1).Object("data").String("msg", "noop write for atClusterTime read concern").End().String("$db", "admin").Doc()
	if _, err := op.ReplicaSet.Group.Ask(op.Ctx, host, note); err != nil {
		op.Log.Debug("The primary was asked for an entry of the oplog, and has not written it", "error", err.Error())
	}
}

// view is a view of what the operation reads outside of transactions.
func (op *Op) view() (*storage.View, error) {
	if op.snapshot != nil {
		return op.Query.Store.ViewPast(op.Ctx, op.snapshot, op.Now)
	}
	return op.Query.Store.ViewAt(op.Ctx, op.Now)
}

// readsAt is the cluster time that the operation reads as of, 0 for the present.
func (op *Op) readsAt() uint64 {
	if op.snapshot == nil {
		return 0
	}
	return uint64(op.snapshot.At())
}

// appendAt appends the cluster time that a read is as of, if it is one of a snapshot.
func appendAt(b *bson.Builder, at uint64) *bson.Builder {
	if at == 0 {
		return b
	}
	t := oplog.Timestamp(at)
	return b.Timestamp("atClusterTime", t.Seconds(), t.Counter())
}
