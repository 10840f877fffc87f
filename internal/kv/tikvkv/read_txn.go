package tikvkv

import (
	"context"

	"github.com/ebbdb/ebb/internal/kv"
	"github.com/ebbdb/ebb/internal/kv/overlay"
)

// readTxn is a transaction of a Follower, for who reads in one: it has nothing to commit.
type readTxn struct {
	overlay.View
	snapshot *snapshot
	does     bool // something that cannot be done here
	ended    bool
}

// Begin is kv.Engine's.
func (f *Follower) Begin() (kv.Txn, error) {
	s, err := f.look()
	if err != nil {
		return nil, err
	}
	t := &readTxn{snapshot: s}
	t.View.Snapshot = s
	return t, nil
}

// BeginBlind is kv.Engine's.
func (f *Follower) BeginBlind() (kv.Txn, error) { return f.Begin() }

// BeginAt is kv.Engine's.
func (f *Follower) BeginAt(at kv.Snapshot) (kv.Txn, error) {
	s, ok := at.(*snapshot)
	if !ok || s.closed.Load() {
		return nil, errSnapshotClosed
	}
	t := &readTxn{snapshot: s.share()}
	t.View.Snapshot = t.snapshot
	return t, nil
}

// Within is kv.Txn's.
func (t *readTxn) Within(ctx context.Context) { t.snapshot.Within(ctx) }

// Mean is kv.Txn's.
func (t *readTxn) Mean(kv.Meaning) {}

// Stamp is kv.Txn's.
func (t *readTxn) Stamp(ops ...kv.Op) { t.does = t.does || len(ops) > 0 }

// Conflicts is kv.Txn's. Whoever asks goes on to write, which is refused.
func (t *readTxn) Conflicts([]byte) bool { return false }

// Commit is kv.Txn's.
func (t *readTxn) Commit(ctx context.Context, _ kv.Durability) error {
	if t.ended {
		panic("tikvkv: the transaction has ended")
	}
	defer t.Rollback()
	w := &t.Writes
	if t.does || w.Len() > 0 || len(w.Counters()) > 0 || len(w.Ranges()) > 0 || len(w.Claims()) > 0 {
		return errFollower
	}
	return ctx.Err()
}

// Rollback is kv.Txn's.
func (t *readTxn) Rollback() {
	if !t.ended {
		t.ended = true
		t.snapshot.Close()
	}
}
