package storage

import (
	"context"
	"errors"
	"fmt"

	"github.com/ebbdb/ebb/internal/kv"
	"github.com/ebbdb/ebb/internal/storage/expiry"
	"github.com/ebbdb/ebb/internal/storage/layout"
	"github.com/ebbdb/ebb/internal/storage/walk"
)

// While the compaction of an index takes its place the counter of its entries says less than there are (expiry.Note).

// settleCompactions makes the counters right of indexes that a crash has interrupted the compaction of.
func (s *Store) settleCompactions(ctx context.Context) error {
	snapshot, err := s.engine.Snapshot()
	if err != nil {
		return err
	}
	defer snapshot.Close()
	return walk.Meta(snapshot, layout.MetaCompaction, func(key, value []byte) error {
		n, err := expiry.ReadNote(key, value)
		if err != nil {
			return err
		}
		early, err := n.IsEarly(snapshot)
		if err != nil {
			return err
		}
		settle := n.Remove
		if early {
			settle = n.Undo
		}
		t, err := s.engine.Begin()
		if err != nil {
			return err
		}
		settle(t)
		return t.Commit(ctx, kv.Buffered)
	})
}

// countedEarly is how many entries the counter of an index leaves out that are there, as the view sees it.
func (r *Reader) countedEarly(index uint32) (int64, error) {
	if !r.mayHaveTombstones() {
		return 0, nil
	}
	key := layout.CompactionKey(index)
	value, err := r.view.reader.Get(key)
	switch {
	case errors.Is(err, kv.ErrNotFound):
		return 0, nil
	case err != nil:
		return 0, fmt.Errorf("storage: look for what was rewritten: %w", err)
	}
	n, err := expiry.ReadNote(key[len(key)-4:], value)
	if err != nil {
		return 0, err
	}
	early, err := n.IsEarly(r.view.reader)
	if err != nil || !early {
		return 0, err
	}
	return n.Removed, nil
}
