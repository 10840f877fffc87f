package command

import (
	"github.com/ebbdb/ebb/internal/bson"
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
		return store.Remember(op.Now)
	}
	if now := op.clusterTime(); op.at > now {
		return nil, timeToCome("atClusterTime", op.at, now)
	}
	return store.Recall(op.Ctx, op.at, op.Now)
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
