// Package due finds when the documents of a collection expire, and which have, from keys alone: those of index entries, and those
// of records that lie in the order of expiry. It reads no document but those in coarse places and under paths with positions, and deletes nothing.
package due

import (
	"context"

	"github.com/ebbdb/ebb/internal/catalog"
	"github.com/ebbdb/ebb/internal/kv"
	"github.com/ebbdb/ebb/internal/storage/expiryorder"
	"github.com/ebbdb/ebb/internal/storage/layout"
	"github.com/ebbdb/ebb/internal/ttl/policy"
)

// Source is where the dates of one collection are: a snapshot, and what is known of the collection in it.
type Source struct {
	Ctx        context.Context // ends what takes long
	Snapshot   kv.Reader
	Collection *catalog.Collection
	Rules      policy.Rules
	Order      *expiryorder.Order // nil where records do not lie in one
	IsNumbered bool               // record ids have numbers
	State      State
}

// State is what a Source asks for where it matters.
type State interface {
	// Tombstones are what was swept and may be in indexes yet, as the snapshot has them.
	Tombstones() (expiryorder.Tombstones, error)
	// Floor is a date before which no record of a span lies in the order, as the snapshot sees it.
	Floor(span byte) int64
	// IsInOrder says whether all records are known to lie in the order.
	IsInOrder() bool
	// Index is an index of the collection that keeps entries, and whether any document has several there.
	Index(number uint32) (e layout.Entries, multikey bool)
}
