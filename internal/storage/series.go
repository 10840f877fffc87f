package storage

import (
	"encoding/binary"
	"sync/atomic"

	"github.com/ebbdb/ebb/internal/bson"
	"github.com/ebbdb/ebb/internal/catalog"
	"github.com/ebbdb/ebb/internal/keystring"
	"github.com/ebbdb/ebb/internal/mongoerr"
	"github.com/ebbdb/ebb/internal/storage/layout"
)

// appendSeriesHead appends what the ids of all measurements with doc's meta value begin with.
func appendSeriesHead(dst []byte, t *catalog.TimeSeries, doc bson.Doc) []byte {
	if t.MetaField == "" {
		return append(dst, layout.NoMeta)
	}
	v := doc.Lookup(t.MetaField)
	if v.IsMissing() {
		return append(dst, layout.NoMeta)
	}
	return keystring.Append(dst, v, false)
}

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
