package storage

import (
	"encoding/binary"
	"fmt"
	"sync/atomic"

	"github.com/ebbdb/ebb/internal/bson"
	"github.com/ebbdb/ebb/internal/catalog"
	"github.com/ebbdb/ebb/internal/keystring"
	"github.com/ebbdb/ebb/internal/kv"
	"github.com/ebbdb/ebb/internal/mongoerr"
	"github.com/ebbdb/ebb/internal/storage/layout"
	"github.com/ebbdb/ebb/internal/storage/walk"
	"github.com/ebbdb/ebb/internal/ttl/policy"
)

// The measurements of a time series lie in the order of what they measure, then of their time:
//
//	id = the key string of the meta value, or noMeta | time, 8 bytes | number, 8 bytes
//
// So what one source measured in a while is one stretch of keys. The number tells measurements of one moment apart; it
// counts from 1 in each process, past those that are taken. No key string is the beginning of another, so that what
// follows the meta value is always the last 16 bytes.
const (
	noMeta       = 1 // before the first byte of every key string
	seriesSuffix = 8 + 8
)

// appendSeriesHead appends what the ids of all measurements with doc's meta value begin with.
func appendSeriesHead(dst []byte, t *catalog.TimeSeries, doc bson.Doc) []byte {
	if t.MetaField == "" {
		return append(dst, noMeta)
	}
	v := doc.Lookup(t.MetaField)
	if v.IsMissing() {
		return append(dst, noMeta)
	}
	return keystring.Append(dst, v, false)
}

// seriesTime is the time in the key or id of a measurement.
func seriesTime(key []byte) int64 { return layout.ReadMillis(key[len(key)-seriesSuffix:]) }

// seriesHead is a measurement's key or id without time and number.
func seriesHead(key []byte) []byte { return key[:len(key)-seriesSuffix] }

// seriesID is the id of a measurement but for its number, which is yet to be filled in.
func (c *collection) seriesID(doc bson.Doc) (RecordID, error) {
	t := c.Options.TimeSeries
	at := doc.Lookup(t.TimeField)
	if at.Type != bson.TypeDate {
		return nil, mongoerr.New(mongoerr.BadValue, "'%s' must be present and contain a valid BSON UTC datetime value", t.TimeField)
	}
	id := RecordID(appendSeriesHead(nil, t, doc))
	if err := checkRecordID(id, doc.Lookup(t.MetaField)); err != nil {
		return nil, err
	}
	return append(layout.AppendMillis(id, at.Millis()), make([]byte, 8)...), nil
}

// placeInSeries is the id for a new measurement. It needs no claim: nobody else in this process gets its number, and of
// those of earlier ones the view knows all.
func (w *Writer) placeInSeries(doc bson.Doc) (RecordID, error) {
	id, err := w.c.seriesID(doc)
	if err != nil {
		return nil, err
	}
	for {
		binary.BigEndian.PutUint64(id[len(id)-8:], w.c.state.measured.Add(1))
		if _, taken, err := w.stored(id); err != nil || !taken {
			return id, err
		}
	}
}

// inPlace says whether id is one that doc may have.
func (c *collection) inPlace(id RecordID, doc bson.Doc) bool {
	want, err := c.seriesID(doc)
	return err == nil && len(id) == len(want) && string(id[:len(id)-8]) == string(want[:len(want)-8])
}

// measured numbers the measurements of a time series.
type measured = atomic.Uint64

// addSeriesIndex gives a new time series its index on the meta field and the time.
func (c *change) addSeriesIndex(coll *catalog.Collection) error {
	t := coll.Options.TimeSeries
	if t.MetaField == "" || t.MetaField == t.TimeField || t.MetaField == "_id" {
		return nil
	}
	spec := bson.Build().Int32("v", 2).Object("key").Int32(t.MetaField, 1).Int32(t.TimeField, 1).End().
		String("name", t.MetaField+"_1_"+t.TimeField+"_1").Doc()
	d, err := c.store.options.Indexes.Parse(spec, coll.Options.Collation)
	if err != nil {
		return err
	}
	return c.addIndex(coll, d)
}

// step is what comes after a key of walkSeries.
type step int

const (
	onward    step = iota // the next measurement
	nextGroup             // the first one of the next meta value
	enough                // nothing
)

// walkSeries calls f with the id and key of each measurement whose time s is about, from behind the key after on, in the
// order of their meta values, then of their times. What lies outside is not read but jumped over, once a meta value.
func (r *Reader) walkSeries(s span, after []byte, f func(id RecordID, key []byte) step) (more bool, err error) {
	start := layout.RecordKey(nil, r.c.ID, nil)
	var w walk.Keys
	if err := w.Open(r.view.ctx, r.view.reader, kv.IterOptions{Lower: start, Upper: layout.After(start)}, false, after); err != nil {
		return false, err
	}
	defer w.Close()
	for w.Next() {
		key := w.Key()
		if len(key) < layout.TableLength+1+seriesSuffix {
			return false, fmt.Errorf("storage: %w: %x is no measurement of %s", layout.ErrBrokenRecord, key, r.c.NS)
		}
		next := onward
		switch at := seriesTime(key); {
		case at < s.from:
			w.Seek(layout.AppendMillis(append([]byte(nil), seriesHead(key)...), s.from))
			continue
		case at > s.to:
			next = nextGroup
		default:
			next = f(key[layout.TableLength:], key)
		}
		switch next {
		case nextGroup:
			w.Seek(layout.After(seriesHead(key)))
		case enough:
			return false, w.Err()
		}
	}
	return true, w.Err()
}

// Cells is how many cells of the time series have measurements in them: what MongoDB would have at least so many buckets
// for. It looks at one measurement in each.
func (r *Reader) Cells() (n int64, err error) {
	span := r.c.Options.TimeSeries.SpanSeconds
	start := layout.RecordKey(nil, r.c.ID, nil)
	var w walk.Keys
	if err := w.OpenRange(r.view.ctx, r.view.reader, start); err != nil {
		return 0, err
	}
	defer w.Close()
	for w.Next() {
		key := w.Key()
		if len(key) < layout.TableLength+1+seriesSuffix {
			return n, fmt.Errorf("storage: %w: %x is no measurement of %s", layout.ErrBrokenRecord, key, r.c.NS)
		}
		n++
		end := policy.CellStart(seriesTime(key), span) + span*1000
		w.Seek(layout.AppendMillis(append([]byte(nil), seriesHead(key)...), end))
	}
	return n, w.Err()
}
