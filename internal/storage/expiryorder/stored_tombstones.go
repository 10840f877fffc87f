package expiryorder

import (
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/ebbdb/ebb/internal/kv"
	"github.com/ebbdb/ebb/internal/storage/layout"
	"github.com/ebbdb/ebb/internal/storage/walk"
)

// ReadTombstones are those that are stored of a collection.
func ReadTombstones(r kv.Reader, collection uint32) (Tombstones, error) {
	value, err := r.Get(layout.TombstonesKey(collection))
	switch {
	case errors.Is(err, kv.ErrNotFound):
		return nil, nil
	case err != nil:
		return nil, fmt.Errorf("storage: read what was swept: %w", err)
	}
	ts, err := DecodeTombstones(value)
	if err != nil {
		return nil, fmt.Errorf("storage: collection %d: %w", collection, err)
	}
	return ts, nil
}

// EachTombstones calls f for each collection of which any are stored.
func EachTombstones(r kv.Reader, f func(collection uint32)) error {
	return walk.Meta(r, layout.MetaTombstones, func(key, _ []byte) error {
		if len(key) != 4 {
			return fmt.Errorf("a tombstone of sweeps has the key %x", key)
		}
		f(binary.BigEndian.Uint32(key))
		return nil
	})
}
