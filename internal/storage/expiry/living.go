package expiry

import (
	"context"
	"fmt"

	"github.com/ebbdb/ebb/internal/kv"
	"github.com/ebbdb/ebb/internal/storage/expiryorder"
	"github.com/ebbdb/ebb/internal/storage/layout"
	"github.com/ebbdb/ebb/internal/storage/walk"
)

// CountLiving counts the entries between bounds that are not dead, up to limit unless that is negative.
func CountLiving(ctx context.Context, r kv.Reader, bounds kv.IterOptions, e layout.Entries, dead expiryorder.Tombstones, limit int64) (n int64, err error) {
	var w walk.Keys
	if err := w.Open(ctx, r, bounds, false, nil); err != nil {
		return 0, err
	}
	defer w.Close()
	var room layout.IDRoom
	for n != limit && w.Next() {
		value, err := w.Value()
		if err != nil {
			return n, fmt.Errorf("storage: count entries of %s: %w", e.Name, err)
		}
		id, err := e.EntryID(w.Key(), value, &room)
		if err != nil {
			return n, err
		}
		if !dead.Cover(id) {
			n++
		}
	}
	return n, w.Err()
}
