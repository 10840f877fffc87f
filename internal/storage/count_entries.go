package storage

import (
	"fmt"

	"github.com/ebbdb/ebb/internal/index"
	"github.com/ebbdb/ebb/internal/kv"
	"github.com/ebbdb/ebb/internal/storage/expiry"
	"github.com/ebbdb/ebb/internal/storage/layout"
	"github.com/ebbdb/ebb/internal/storage/walk"
)

// CountEntries is how many entries of an index lie between the positions low and high, see IndexScan, counted up to limit when
// that is not 0. It looks at keys alone: a record counts once for each of its entries, hidden or not, so that it is the
// number of documents only where the index is not multikey and the Reader hides nothing.
func (r *Reader) CountEntries(d *index.Definition, low, high []byte, limit int64) (n int64, err error) {
	bounds, err := r.entryBounds(d, low, high)
	if err != nil {
		return 0, err
	}
	if limit <= 0 {
		limit = -1
	}
	dead, err := r.swept()
	switch {
	case err != nil:
		return 0, err
	case dead == nil:
		return walk.Count(r.view.ctx, r.view.reader, bounds, limit)
	}
	return expiry.CountLiving(r.view.ctx, r.view.reader, bounds, r.c.index(d.ID).Entries, dead, limit)
}

// entryBounds are the keys of the entries of d between two positions.
func (r *Reader) entryBounds(d *index.Definition, low, high []byte) (kv.IterOptions, error) {
	ix := r.c.index(d.ID)
	if ix == nil || ix.Kind == index.Deadline {
		return kv.IterOptions{}, fmt.Errorf("storage: %s has no index %q to scan", r.c.NS, d.Name)
	}
	start := layout.TableKey(nil, ix.Definition)
	bounds := kv.IterOptions{Lower: start, Upper: layout.After(start)}
	if low != nil {
		bounds.Lower = append(layout.TableKey(nil, ix.Definition), low...)
	}
	if high != nil {
		bounds.Upper = append(layout.TableKey(nil, ix.Definition), high...)
	}
	return bounds, nil
}
