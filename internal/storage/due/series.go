package due

import (
	"fmt"

	"github.com/ebbdb/ebb/internal/kv"
	"github.com/ebbdb/ebb/internal/storage/layout"
	"github.com/ebbdb/ebb/internal/storage/walk"
	"github.com/ebbdb/ebb/internal/ttl/policy"
)

// step is what comes after a key of walkSeries.
type step int

const (
	onward    step = iota // the next measurement
	nextGroup             // the first one of the next meta value
	enough                // nothing
)

// walkSeries calls f with the id and key of each measurement whose time s is about, from behind the key after on, in the
// order of their meta values, then of their times. What lies outside is not read but jumped over, once a meta value.
func (r *Source) walkSeries(s Span, after []byte, f func(id layout.RecordID, key []byte) step) (more bool, err error) {
	start := layout.RecordKey(nil, r.Collection.ID, nil)
	var w walk.Keys
	if err := w.Open(r.Ctx, r.Snapshot, kv.IterOptions{Lower: start, Upper: layout.After(start)}, false, after); err != nil {
		return false, err
	}
	defer w.Close()
	for w.Next() {
		key := w.Key()
		if len(key) < layout.TableLength+1+layout.SeriesSuffix {
			return false, fmt.Errorf("storage: %w: %x is no measurement of %s", layout.ErrBrokenRecord, key, r.Collection.NS)
		}
		next := onward
		switch at := layout.SeriesTime(key); {
		case at < s.from:
			w.Seek(layout.AppendMillis(append([]byte(nil), layout.SeriesHead(key)...), s.from))
			continue
		case at > s.to:
			next = nextGroup
		default:
			next = f(key[layout.TableLength:], key)
		}
		switch next {
		case nextGroup:
			w.Seek(layout.After(layout.SeriesHead(key)))
		case enough:
			return false, w.Err()
		}
	}
	return true, w.Err()
}

// Cells is how many cells of the time series have measurements in them: what MongoDB would have at least so many buckets
// for. It looks at one measurement in each.
func (r *Source) Cells() (n int64, err error) {
	span := r.Collection.Options.TimeSeries.SpanSeconds
	var w walk.Keys
	if err := w.OpenRange(r.Ctx, r.Snapshot, layout.RecordKey(nil, r.Collection.ID, nil)); err != nil {
		return 0, err
	}
	defer w.Close()
	for w.Next() {
		key := w.Key()
		if len(key) < layout.TableLength+1+layout.SeriesSuffix {
			return n, fmt.Errorf("storage: %w: %x is no measurement of %s", layout.ErrBrokenRecord, key, r.Collection.NS)
		}
		n++
		end := policy.CellStart(layout.SeriesTime(key), span) + span*1000
		w.Seek(layout.AppendMillis(append([]byte(nil), layout.SeriesHead(key)...), end))
	}
	return n, w.Err()
}
