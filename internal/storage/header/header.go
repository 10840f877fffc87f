// Package header is what a store keeps about itself, beside its data: the version of its format, its catalogue, the next numbers of
// collections and indexes, and times. It reads and writes that, and has nothing in memory.
package header

import (
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/ebbdb/ebb/internal/bson"
	"github.com/ebbdb/ebb/internal/catalog"
	"github.com/ebbdb/ebb/internal/index"
	"github.com/ebbdb/ebb/internal/kv"
	"github.com/ebbdb/ebb/internal/storage/expiryclock"
	"github.com/ebbdb/ebb/internal/storage/layout"
	"github.com/ebbdb/ebb/internal/storage/walk"
)

// ReadCatalog reads the catalogue.
func ReadCatalog(r kv.Reader, indexes *index.Parser) (*catalog.Catalog, error) {
	c := catalog.New()
	err := walk.Meta(r, layout.MetaCollection, func(key, value []byte) error {
		coll, err := catalog.Load(bson.Doc(value).Clone(), indexes)
		if err != nil {
			return err
		}
		if c.Collection(coll.NS) != nil {
			return fmt.Errorf("two collections are called %s", coll.NS)
		}
		c = c.With(coll)
		return nil
	})
	return c, err
}

// Numbers are the first free ones of a collection and of an index.
type Numbers struct{ Collection, Index uint32 }

// ReadNumbers reads them.
func ReadNumbers(r kv.Reader) (n Numbers, err error) {
	value, err := r.Get(layout.NextKey())
	switch {
	case errors.Is(err, kv.ErrNotFound):
		return Numbers{1, 1}, nil
	case err != nil:
		return Numbers{}, err
	case len(value) != 8:
		return Numbers{}, fmt.Errorf("the next numbers have %d bytes, want 8", len(value))
	}
	return Numbers{binary.BigEndian.Uint32(value), binary.BigEndian.Uint32(value[4:])}, nil
}

// Set keeps them, in the transaction that has read them. It claims them: of two that take numbers at once one fails, so none is taken
// twice.
func (n Numbers) Set(t kv.Txn) {
	t.Claim(layout.NextKey())
	t.Set(layout.NextKey(), binary.BigEndian.AppendUint32(binary.BigEndian.AppendUint32(nil, n.Collection), n.Index))
}

// ReadTimes reads the latest time that was seen, 0 for none, and where the clock of expiry stands still, expiryclock.NotHeld when it goes on.
func ReadTimes(r kv.Reader) (seen, hold int64, err error) {
	if seen, err = readTime(r, layout.MetaTime, 0); err != nil {
		return 0, 0, err
	}
	hold, err = readTime(r, layout.MetaHold, expiryclock.NotHeld)
	return seen, hold, err
}

// SetTime keeps one of the times; expiryclock.NotHeld removes it.
func SetTime(t kv.Txn, which byte, millis int64) {
	if key := []byte{layout.MetaPrefix, which}; millis == expiryclock.NotHeld {
		t.Delete(key)
	} else {
		t.Set(key, binary.BigEndian.AppendUint64(nil, uint64(millis)))
	}
}

func readTime(r kv.Reader, which byte, missing int64) (int64, error) {
	value, err := r.Get([]byte{layout.MetaPrefix, which})
	switch {
	case errors.Is(err, kv.ErrNotFound):
		return missing, nil
	case err != nil:
		return 0, err
	case len(value) != 8:
		return 0, fmt.Errorf("a time has %d bytes, want 8", len(value))
	}
	return int64(binary.BigEndian.Uint64(value)), nil
}
