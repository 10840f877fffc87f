package expiry

import (
	"math"
	"slices"

	"github.com/ebbdb/ebb/internal/kv"
	"github.com/ebbdb/ebb/internal/storage/due"
	"github.com/ebbdb/ebb/internal/storage/expiryorder"
	"github.com/ebbdb/ebb/internal/storage/layout"
	"github.com/ebbdb/ebb/internal/storage/walk"
)

// histogramStep is how many records are counted before the histogram is told.
const histogramStep = 4096

// CountOrder adds what lies in the order of a snapshot to the order's histogram, from a key on, nil for the beginning, and returns where
// to go on after at most so many records; nil when that was all.
func CountOrder(d *due.Source, from []byte, most int) (next []byte, err error) {
	low, high := d.Order.Bounds()
	if from != nil {
		low = from
	}
	var w walk.Keys
	if err := w.Open(d.Ctx, d.Snapshot, kv.IterOptions{Lower: low, Upper: high}, false, nil); err != nil {
		return nil, err
	}
	defer w.Close()
	var some []expiryorder.Change
	for n := 0; w.Next(); n++ {
		if n == most {
			next = slices.Clone(w.Key())
			break
		}
		span, date, ok := d.Order.Of(layout.RecordID(w.Key()[layout.TableLength:]))
		if !ok && d.Order.Clustered {
			break
		}
		if !ok { // it never expires, and so do those behind it, up to the coarse spans
			w.Seek(d.Order.DatedKey(layout.CoarseDefault, math.MinInt64))
			continue
		}
		n, err := w.DocumentBytes()
		if err != nil {
			return nil, err
		}
		if k := len(some); k > 0 && some[k-1].Span == span && some[k-1].Date == date {
			some[k-1].Documents++
			some[k-1].Bytes += n
			continue
		}
		if len(some) == histogramStep {
			d.Order.Histogram.Add(some)
			some = some[:0]
		}
		some = append(some, expiryorder.Change{Span: span, Date: date, Documents: 1, Bytes: n})
	}
	d.Order.Histogram.Add(some)
	return next, w.Err()
}
