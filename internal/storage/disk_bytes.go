package storage

import (
	"context"

	"github.com/ebbdb/ebb/internal/index"
	"github.com/ebbdb/ebb/internal/storage/diskspace"
	"github.com/ebbdb/ebb/internal/storage/layout"
)

// DiskBytes estimates what the records take on disk.
func (r *Reader) DiskBytes() (int64, error) {
	return diskspace.Of(r.view.store.engine, layout.RecordKey(nil, r.c.ID, nil))
}

// IndexDiskBytes estimates what the entries of an index take on disk.
func (r *Reader) IndexDiskBytes(d *index.Definition) (int64, error) {
	return diskspace.Of(r.view.store.engine, layout.TableKey(nil, d))
}

// Compact gives back the room that nothing in the collection and its indexes takes any more, and says how much that was.
func (r *Reader) Compact(ctx context.Context) (freed int64, err error) {
	tables := [][]byte{layout.RecordKey(nil, r.c.ID, nil)}
	for _, d := range r.c.Indexes {
		tables = append(tables, layout.TableKey(nil, d))
	}
	return diskspace.Compact(ctx, r.view.store.engine, tables)
}
