package storage

import (
	"github.com/ebbdb/ebb/internal/storage/expiryorder"
)

// Unhidden is r with the documents that have expired and are still stored, for those who explain or repair.
func (r *Reader) Unhidden() *Reader {
	all := *r
	all.hides, all.key, all.bounds = false, nil, expiryorder.HiddenBounds{}
	return &all
}

// EntriesRemoved is how many index entries the transaction has removed from the collection so far, less those it added.
func (w *Writer) EntriesRemoved() int64 { return -w.entries.Added(w.documents) }
