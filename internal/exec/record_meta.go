package exec

import (
	"context"
	"slices"

	"github.com/ebbdb/ebb/internal/bson"
	"github.com/ebbdb/ebb/internal/sortpattern"
)

// What a query may ask to know of a document by how it was found and sorted, as metadata.
const (
	indexKeyMeta = "indexKey"
	recordIDMeta = "recordId"
	sortKeyMeta  = "sortKey"
)

// RecordMeta is what of that is asked for.
type RecordMeta struct{ IndexKey, RecordID, SortKey bool }

// RecordMetaOf is what of kinds, names of metadata, is about records.
func RecordMetaOf(kinds []string) RecordMeta {
	return RecordMeta{slices.Contains(kinds, indexKeyMeta), slices.Contains(kinds, recordIDMeta), slices.Contains(kinds, sortKeyMeta)}
}

// WithRecordMeta is in, which gives records one by one: with what is asked of them as metadata. order is what they are sorted
// by already, nil for nothing. Behind a sort of in's own that is told by the sort.
func WithRecordMeta(op *Op, asked RecordMeta, records *Records, order *sortpattern.Pattern, in Iterator) Iterator {
	if asked == (RecordMeta{}) {
		return in
	}
	op.SortKeys = asked.SortKey
	w := &withRecordMeta{op: op, asked: asked, records: records, in: in}
	if order != nil {
		w.order = patternOrder{order, op.collator(), op.Interrupted}
	}
	return w
}

type withRecordMeta struct {
	op      *Op
	asked   RecordMeta
	records *Records
	order   order
	in      Iterator
}

func (w *withRecordMeta) Next(ctx context.Context) (bson.Doc, error) {
	doc, err := w.in.Next(ctx)
	if doc == nil || err != nil {
		return nil, err
	}
	w.op.Meta.Remove(indexKeyMeta, sortKeyMeta)
	if w.asked.RecordID {
		w.op.Meta.Set(recordIDMeta, w.records.Record().ID.Value())
	}
	if key := w.records.IndexKey(); key != nil && w.asked.IndexKey {
		w.op.Meta.Set(indexKeyMeta, key.Value())
	}
	if w.asked.SortKey && w.order != nil {
		err = w.op.tellSortKey(w.order, doc)
	}
	return doc, err
}

func (w *withRecordMeta) Close() error { return w.in.Close() }

// tellSortKey sets what o sorts d by as metadata.
func (op *Op) tellSortKey(o order, d bson.Doc) error {
	key, err := o.Key(nil, d, op.Meta.Get)
	if err != nil {
		return err
	}
	for i, v := range key {
		if v.IsMissing() {
			key[i] = bson.Null
		}
	}
	op.Meta.Set(sortKeyMeta, bson.ArrayOf(key...))
	return nil
}
