package storage

import (
	"context"
	"fmt"

	"github.com/ebbdb/ebb/internal/bson"
	"github.com/ebbdb/ebb/internal/kv"
	"github.com/ebbdb/ebb/internal/storage/history"
	"github.com/ebbdb/ebb/internal/storage/oplog"
)

// HistoryWrites is how many commits there were since the start that something is kept of for their session.
func (s *Store) HistoryWrites() int64 { return s.historyWrites.Load() }

// History reads what is kept of a session.
func (s *Store) History(ctx context.Context, session bson.Doc) (*history.History, error) {
	view, err := s.View(ctx)
	if err != nil {
		return nil, err
	}
	defer view.Close()
	return history.Read(session, view)
}

// AwaitOrdered returns when it is known what has become of each commit that was on its way and that its client knows nothing of: who reads then sees what
// was committed.
func (s *Store) AwaitOrdered(ctx context.Context) error {
	t, err := s.engine.BeginBlind()
	if err != nil {
		return fmt.Errorf("storage: begin: %w", err)
	}
	if err := t.Commit(ctx, kv.Unsynced); err != nil { // it writes nothing, and comes behind all others
		return fmt.Errorf("storage: await what was ordered: %w", err)
	}
	return nil
}

// retry has the transaction be a statement of a retryable write.
func (t *Txn) retry(r *history.Retry) {
	t.history = r.Commit()
	t.log.Statement(r.Statement, r.Image)
}

// Statement says which statement of a retryable write is written next.
func (w *Writer) Statement(number int32) { w.txn.log.Statement(number, oplog.NoImage) }
