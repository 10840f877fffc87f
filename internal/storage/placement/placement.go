// Package placement tells which id a record has by what its document says: in a clustered collection by its _id, in a time series by what is
// measured, and when. Elsewhere records are numbered, and their _ids are the keys of an index. It does not know which records there are.
package placement

import (
	"github.com/ebbdb/ebb/internal/bson"
	"github.com/ebbdb/ebb/internal/catalog"
	"github.com/ebbdb/ebb/internal/collation"
	"github.com/ebbdb/ebb/internal/keystring"
	"github.com/ebbdb/ebb/internal/mongoerr"
	"github.com/ebbdb/ebb/internal/storage/layout"
)

// maxBytes is the longest record id, which bounds the _id of a clustered collection.
const maxBytes = 8 << 20

// Placement is that of one collection.
type Placement struct {
	of *catalog.Collection
	// ids are the entries of the index on _id, nil when clustered or a time series.
	ids *layout.Entries
	// collation orders the ids of a clustered collection; nil for the order of bytes.
	collation keystring.Collator
}

// New is the placement of a collection; ids are the entries of its index on _id, nil where it has none.
func New(of *catalog.Collection, ids *layout.Entries) Placement {
	p := Placement{of: of, ids: ids}
	if of.CollatedIDs {
		if parsed, err := collation.Parse(of.Options.Collation); err == nil && parsed != nil {
			p.collation = parsed
		}
	}
	return p
}

// AppendID appends the key string of an _id, which in a clustered collection is the record's id.
func (p *Placement) AppendID(dst []byte, id bson.Value) []byte {
	if p.ids != nil {
		return p.ids.AppendKey(dst, 0, id)
	}
	return keystring.AppendCollated(dst, id, false, p.collation)
}

// Clustered is the id of a record of a clustered collection.
func (p *Placement) Clustered(doc bson.Doc) (layout.RecordID, error) {
	id := layout.RecordID(p.AppendID(nil, doc.Lookup("_id")))
	return id, check(id, doc.Lookup("_id"))
}

// Measurement is the id of a record of a time series but for its number, which is yet to be filled in.
func (p *Placement) Measurement(doc bson.Doc) (layout.RecordID, error) {
	t := p.of.Options.TimeSeries
	at := doc.Lookup(t.TimeField)
	if at.Type != bson.TypeDate {
		return nil, mongoerr.New(mongoerr.BadValue, "'%s' must be present and contain a valid BSON UTC datetime value", t.TimeField)
	}
	id := layout.RecordID(appendHead(nil, t, doc))
	if err := check(id, doc.Lookup(t.MetaField)); err != nil {
		return nil, err
	}
	return append(layout.AppendMillis(id, at.Millis()), make([]byte, 8)...), nil
}

// appendHead appends what the ids of all measurements with doc's meta value begin with.
func appendHead(dst []byte, t *catalog.TimeSeries, doc bson.Doc) []byte {
	if t.MetaField == "" {
		return append(dst, layout.NoMeta)
	}
	v := doc.Lookup(t.MetaField)
	if v.IsMissing() {
		return append(dst, layout.NoMeta)
	}
	return keystring.Append(dst, v, false)
}

// check bounds the id that an _id has become, as MongoDB writes it: there the end of a string is a byte shorter.
func check(id layout.RecordID, of bson.Value) error {
	n := len(id)
	if of.Type == bson.TypeString {
		n--
	}
	if n > maxBytes {
		return mongoerr.New(5894900, "The size of the RecordId is %d, which is larger than the maximum of %d", n, maxBytes)
	}
	return nil
}

// IsInPlace says whether a record of a clustered collection, or of a time series, lies where its document belongs.
func (p *Placement) IsInPlace(rec layout.Record) bool {
	if !p.of.IsTimeSeries() {
		return string(p.AppendID(nil, rec.Doc.Lookup("_id"))) == string(rec.ID)
	}
	want, err := p.Measurement(rec.Doc)
	return err == nil && len(rec.ID) == len(want) && string(rec.ID[:len(want)-8]) == string(want[:len(want)-8])
}
