package expiry

import (
	"bytes"
	"errors"

	"github.com/ebbdb/ebb/internal/kv"
	"github.com/ebbdb/ebb/internal/storage/due"
	"github.com/ebbdb/ebb/internal/storage/layout"
	"github.com/ebbdb/ebb/internal/storage/walk"
)

// unclusteredBytes bounds the documents that Unclustered returns at once.
const unclusteredBytes = 4 << 20

// Unclustered are at most limit records behind the key after, or from the first on when that is nil, that lie elsewhere than in the
// order; all says that there are no more.
func Unclustered(d *due.Source, after []byte, limit int) (found []layout.Record, all bool, err error) {
	size := 0
	for _, part := range outOfOrder(d, after) {
		var w walk.Keys
		if err := w.Open(d.Ctx, d.Snapshot, part, false, nil); err != nil {
			return nil, false, err
		}
		for err == nil && w.Next() {
			if len(found) == limit || size > unclusteredBytes {
				return found, false, w.Close()
			}
			var rec layout.Record
			if rec, err = w.Record(); err == nil {
				found = append(found, rec.Clone())
				size += len(rec.Doc)
			}
		}
		if err = errors.Join(err, w.Err(), w.Close()); err != nil {
			return nil, false, err
		}
	}
	return found, true, nil
}

// CountUnclustered is how many those are, counted by their keys up to limit.
func CountUnclustered(d *due.Source, after []byte, limit int64) (n int64, err error) {
	for _, part := range outOfOrder(d, after) {
		counted, err := walk.Count(d.Ctx, d.Snapshot, part, limit-n)
		if n += counted; err != nil || n >= limit {
			return n, err
		}
	}
	return n, nil
}

// outOfOrder are the keys behind after, or all when that is nil, that do not lie in the collection's order.
func outOfOrder(d *due.Source, after []byte) [2]kv.IterOptions {
	start := layout.RecordKey(nil, d.Collection.ID, nil)
	if after == nil {
		after = start
	}
	low, high := d.Order.Bounds()
	return [2]kv.IterOptions{{Lower: after, Upper: low}, {Lower: larger(after, high), Upper: layout.After(start)}}
}

func larger(a, b []byte) []byte {
	if bytes.Compare(a, b) > 0 {
		return a
	}
	return b
}
