package build

import (
	"context"

	"github.com/ebbdb/ebb/internal/kv"
	"github.com/ebbdb/ebb/internal/storage/layout"
)

// Records are the records of the collection in one view, hidden ones included.
type Records interface {
	// Count is how many there are.
	Count() (int64, error)
	// Scan walks them from behind after on, up to and without high, or backwards; nil leaves a side open.
	Scan(after, high layout.RecordID, reverse bool) (Cursor, error)
	// Get is the record with the id.
	Get(id layout.RecordID) (rec layout.Record, there bool, err error)
	IsHidden(rec layout.Record) bool
	// Holder is the record whose entry has the key in a unique index; nil when there is none.
	Holder(key []byte) (layout.RecordID, error)
	// Snapshot is what the view reads, and what ends it.
	Snapshot() (context.Context, kv.Reader)
	Close() error
}

// Cursor walks records.
type Cursor interface {
	Next() bool
	Record() layout.Record
	Err() error
	Close() error
}
