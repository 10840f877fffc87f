package expiry

import (
	"context"
	"errors"
	"fmt"

	"github.com/ebbdb/ebb/internal/kv"
	"github.com/ebbdb/ebb/internal/storage/layout"
	"github.com/ebbdb/ebb/internal/storage/walk"
)

// While the compaction of an index takes its place the counter of its entries says less than there are (Note).

// SettleCompactions makes the counters right of indexes that a crash has interrupted the compaction of.
func SettleCompactions(ctx context.Context, engine kv.Engine) error {
	snapshot, err := engine.Snapshot()
	if err != nil {
		return err
	}
	defer snapshot.Close()
	return walk.Meta(snapshot, layout.MetaCompaction, func(key, value []byte) error {
		n, err := ReadNote(key, value)
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
		t, err := engine.Begin()
		if err != nil {
			return err
		}
		settle(t)
		return t.Commit(ctx, kv.Buffered)
	})
}

// CountedEarly is how many entries the counter of an index leaves out that are there, as a snapshot has it.
func CountedEarly(r kv.Reader, index uint32) (int64, error) {
	key := layout.CompactionKey(index)
	value, err := r.Get(key)
	switch {
	case errors.Is(err, kv.ErrNotFound):
		return 0, nil
	case err != nil:
		return 0, fmt.Errorf("storage: look for what was compacted: %w", err)
	}
	n, err := ReadNote(key[len(key)-4:], value)
	if err != nil {
		return 0, err
	}
	early, err := n.IsEarly(r)
	if err != nil || !early {
		return 0, err
	}
	return n.Removed, nil
}
