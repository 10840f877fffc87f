package storage

import (
	"context"
	"fmt"

	"github.com/ebbdb/ebb/internal/index"
	"github.com/ebbdb/ebb/internal/kv"
	"github.com/ebbdb/ebb/internal/storage/layout"
)

// DiskBytes estimates what the records take on disk.
func (r *Reader) DiskBytes() (int64, error) {
	return sizeOf(r.view.store.engine, layout.RecordKey(nil, r.c.ID, nil))
}

// IndexDiskBytes estimates what the entries of an index take on disk.
func (r *Reader) IndexDiskBytes(d *index.Definition) (int64, error) {
	return sizeOf(r.view.store.engine, layout.TableKey(nil, d))
}

// Compact gives back the room that nothing in the collection and its indexes takes any more, and says how much that was.
func (r *Reader) Compact(ctx context.Context) (freed int64, err error) {
	engine := r.view.store.engine
	starts := [][]byte{layout.RecordKey(nil, r.c.ID, nil)}
	for _, d := range r.c.Indexes {
		starts = append(starts, layout.TableKey(nil, d))
	}
	for _, start := range starts {
		before, err := sizeOf(engine, start)
		if err != nil {
			return freed, err
		}
		if err := engine.Compact(ctx, start, layout.After(start)); err != nil {
			return freed, fmt.Errorf("storage: compact: %w", err)
		}
		after, err := sizeOf(engine, start)
		if err != nil {
			return freed, err
		}
		freed += max(0, before-after)
	}
	return freed, nil
}

func sizeOf(engine kv.Engine, start []byte) (int64, error) {
	n, err := engine.SizeOf(start, layout.After(start))
	if err != nil {
		return 0, fmt.Errorf("storage: measure: %w", err)
	}
	return n, nil
}
