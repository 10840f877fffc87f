package query

import (
	"context"

	"github.com/ebbdb/ebb/internal/bson"
	"github.com/ebbdb/ebb/internal/storage"
)

// One is the source of a cursor with one document, or none.
type One struct{ doc bson.Doc }

// NewOne has doc, or nothing where that is nil.
func NewOne(doc bson.Doc) *One { return &One{doc} }

// Next implements cursor.Source.
func (o *One) Next(context.Context) (bson.Doc, error) {
	doc := o.doc
	o.doc = nil
	return doc, nil
}

// Park implements cursor.Source.
func (*One) Park() {}

// Held implements cursor.Source.
func (*One) Held() int64 { return 0 }

// Shrink implements cursor.Source.
func (*One) Shrink() error { return nil }

// Close implements cursor.Source.
func (*One) Close() error { return nil }

// Express is Find for what clients ask for most: the whole document with one _id. There is one way to find it, so that
// nothing need be parsed, planned or opened. doc is nil when there is no such document, ok false
// when f asks for anything that Find has to look at.
func (e *Engine) Express(ctx context.Context, f *Find, call *Call) (doc bson.Doc, ok bool, err error) {
	id, ok := f.onlyID()
	if !ok || call.Txn != nil || call.Snapshot || call.Collation != nil || call.Expected != nil || !call.Let.IsEmpty() {
		return nil, false, nil
	}
	view, err := e.Store.ViewAt(ctx, call.Now)
	if err != nil {
		return nil, true, err
	}
	defer view.Release()
	r, ok := view.Collection(f.NS)
	if !ok || !e.straight(r) {
		return nil, false, nil
	}
	rec, _, err := e.byID(r, id, f.Batched, call)
	if err != nil {
		return nil, true, err
	}
	return rec.Doc, true, nil // the engine's values are its reader's to keep
}

// straight says whether an _id, compared without a collation, leads straight to its document in r's collection.
func (e *Engine) straight(r *storage.Reader) bool {
	c := r.Catalog()
	return c.Options.Collation == nil && c.IDIndex() != nil && !e.Settings.Any()
}

// byID is the document with the _id, looked up without a plan, and told as if there had been one: an express plan, or a
// plain one.
func (e *Engine) byID(r *storage.Reader, id bson.Value, plain bool, call *Call) (rec storage.Record, found bool, err error) {
	rec, found, err = r.GetByID(id)
	if err != nil {
		return rec, false, err
	}
	call.PlanSummary, call.execution.express = expressByID.found, expressByID.plan
	if plain {
		call.PlanSummary, call.execution.express = "IDHACK", nil
	}
	if found {
		call.Seen.Keys, call.Seen.Docs = call.Seen.Keys+1, call.Seen.Docs+1
	}
	return rec, found, nil
}

// onlyID is the _id that f asks for, when it asks for nothing else.
func (f *Find) onlyID() (id bson.Value, ok bool) {
	if id, ok = plainID(f.Filter); !ok {
		return bson.Missing, false
	}
	plain := f.Sort.IsEmpty() && f.Projection.IsEmpty() && f.Hint.IsMissing() && f.Min == nil && f.Max == nil &&
		f.Skip == 0 && !f.ReturnKey && !f.ShowRecordID && !f.Tailable
	return id, plain
}
