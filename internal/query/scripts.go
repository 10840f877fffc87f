package query

import (
	"github.com/ebbdb/ebb/internal/bson"
	"github.com/ebbdb/ebb/internal/mongoerr"
	"github.com/ebbdb/ebb/internal/namespace"
)

const (
	// storedScripts is the collection with the functions that all JavaScript of a database may call: {_id: name, value: function}.
	storedScripts = "system.js"
	// maxStoredScripts is how many bytes of them there may be.
	maxStoredScripts = bson.MaxDocSize
)

// StoredScripts implements expr.StoredScripts.
func (l *language) StoredScripts() (bson.Doc, error) {
	ns := namespace.NS{DB: l.db, Coll: storedScripts}
	if coll := l.engine.Store.Catalog().Collection(ns); coll == nil || coll.IsView() {
		return bson.EmptyDoc, nil
	}
	r, err := l.engine.Find(l.ctx, Find{NS: ns}, &Call{Now: l.now})
	if err != nil {
		return nil, err
	}
	all := bson.Build()
	err = r.All(l.ctx, func(d bson.Doc) error {
		name, value := d.Lookup("_id"), d.Lookup("value")
		if name.Type != bson.TypeString || value.IsMissing() {
			return nil
		}
		if all.Len()+len(value.Data) > maxStoredScripts {
			return mongoerr.New(mongoerr.BSONObjectTooLarge, "the functions in %s are larger than %d bytes", ns, maxStoredScripts)
		}
		all.Value(name.Str(), value)
		return nil
	})
	if err != nil {
		return nil, err
	}
	return all.Doc(), nil
}
