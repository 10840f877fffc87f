package storage

import "github.com/ebbdb/ebb/internal/storage/layout"

// The ids, records and entries that others see; layout says how they lie in keys and values.
type (
	RecordID   = layout.RecordID
	Record     = layout.Record
	IndexEntry = layout.IndexEntry
)
