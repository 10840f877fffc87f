package query

import (
	"context"

	"github.com/ebbdb/ebb/internal/bson"
)

// One is the source of a cursor with one document, or none.
type One struct{ doc bson.Doc }

// Doc is the document, nil where there is none.
func (o *One) Doc() bson.Doc { return o.doc }

// Next implements cursor.Source.
func (o *One) Next(context.Context) (bson.Doc, error) {
	doc := o.doc
	o.doc = nil
	return doc, nil
}

// Park implements cursor.Source.
func (*One) Park() {}

// Close implements cursor.Source.
func (*One) Close() error { return nil }

// Express is Find for what clients ask for most: the whole document with one _id. There is one way to find it, so that
// nothing need be parsed, planned or opened. ok is false when f asks for anything that Find has to look at.
func (e *Engine) Express(ctx context.Context, f Find, call *Call) (one *One, ok bool, err error) {
	id, ok := f.onlyID()
	if !ok || call.Collation != nil || !call.Let.IsEmpty() || e.Settings.Any() {
		return nil, false, nil
	}
	view, err := e.Store.ViewAt(ctx, call.Now)
	if err != nil {
		return nil, true, err
	}
	defer view.Close()
	r, ok := view.Collection(f.NS)
	if !ok || r.Catalog().Options.Collation != nil || r.Catalog().IDIndex() == nil {
		return nil, false, nil
	}
	rec, found, err := r.GetByID(id)
	if err != nil {
		return nil, true, err
	}
	call.PlanSummary = "IDHACK"
	one = &One{}
	if found { // the engine's values are its reader's to keep
		call.Seen.Keys, call.Seen.Docs, one.doc = 1, 1, rec.Doc
	}
	return one, true, nil
}

// onlyID is the _id that f asks for, when it asks for nothing else.
func (f *Find) onlyID() (id bson.Value, ok bool) {
	it := f.Filter.Iter()
	if !it.Next() || it.Key() != "_id" {
		return bson.Missing, false
	}
	if id = it.Value(); !isPlainID(id) || it.Next() {
		return bson.Missing, false
	}
	plain := f.Sort.IsEmpty() && f.Projection.IsEmpty() && f.Hint.IsMissing() && f.Min == nil && f.Max == nil &&
		f.Skip == 0 && !f.ReturnKey && !f.ShowRecordID && !f.Tailable
	return id, plain
}

// isPlainID says whether v, as a filter of _id, means the document whose _id is v, whatever the query's language has to say.
func isPlainID(v bson.Value) bool {
	switch v.Type {
	case bson.TypeObjectID, bson.TypeString, bson.TypeInt32, bson.TypeInt64, bson.TypeDouble, bson.TypeDecimal, bson.TypeDate,
		bson.TypeBool, bson.TypeBinary, bson.TypeTimestamp:
		return true
	}
	return false
}
