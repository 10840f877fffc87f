package storage

import (
	"fmt"

	"github.com/ebbdb/ebb/internal/index"
	"github.com/ebbdb/ebb/internal/kv"
	"github.com/ebbdb/ebb/internal/storage/expiryorder"
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
	var w walk.Keys
	if err := w.Open(r.view.ctx, r.view.reader, bounds, false, nil); err != nil {
		return 0, err
	}
	defer w.Close()
	return r.countLiving(&w, r.c.index(d.ID).Entries, dead, limit)
}

// countLiving is CountEntries where some are dead.
func (r *Reader) countLiving(w *walk.Keys, e layout.Entries, dead expiryorder.Tombstones, limit int64) (n int64, err error) {
	var room layout.IDRoom
	for n != limit && w.Next() {
		value, err := w.Value()
		if err != nil {
			return n, fmt.Errorf("storage: count entries of %s: %w", r.c.NS, err)
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
