package query

import (
	"context"
	"errors"

	"github.com/ebbdb/ebb/internal/bson"
	"github.com/ebbdb/ebb/internal/catalog"
	"github.com/ebbdb/ebb/internal/mongoerr"
	"github.com/ebbdb/ebb/internal/storage"
)

// The types of search indexes.
const (
	// TextIndex is for $search and $searchMeta.
	TextIndex = "search"
	// VectorIndex is for $vectorSearch.
	VectorIndex = "vectorSearch"
)

// SearchIndexID is the _id of what is kept of a search index. It has the collection's UUID: the index lives as long as that, whatever the
// collection is called.
func SearchIndexID(coll *catalog.Collection, name string) bson.Value {
	return bson.Build().Binary("collection", 4, coll.UUID[:]).String("name", name).Doc().Value()
}

// SearchIndexType is the type of a search index, by what is kept of it; ok is false where that is none that is known. What has no type is one
// for vectors: there were no others at first.
func SearchIndexType(stored bson.Doc) (kind string, ok bool) {
	switch v := stored.Lookup("type"); {
	case v.IsMissing():
		return VectorIndex, true
	case v.Type == bson.TypeString && v.Str() == TextIndex:
		return TextIndex, true
	case v.Type == bson.TypeString && v.Str() == VectorIndex:
		return VectorIndex, true
	}
	return "", false
}

// searchIndex is the definition and the type of a collection's search index; nil where there is none of the name.
func searchIndex(view *storage.View, coll *catalog.Collection, name string) (definition bson.Doc, kind string, err error) {
	stored, err := storedSearchIndex(view, SearchIndexID(coll, name))
	if err != nil || stored == nil {
		return nil, "", err
	}
	kind, ok := SearchIndexType(stored)
	if !ok || stored.Lookup("definition").Type != bson.TypeObject {
		return nil, "", mongoerr.New(mongoerr.FailedToParse, "what %s has of a search index is none of its definitions", catalog.SearchIndexesNS)
	}
	return stored.Lookup("definition").Doc(), kind, nil
}

// storedSearchIndex is what is kept of a search index, nil where there is none.
func storedSearchIndex(view *storage.View, id bson.Value) (bson.Doc, error) {
	r, ok := view.Collection(catalog.SearchIndexesNS)
	if !ok {
		return nil, nil
	}
	rec, ok, err := r.GetByID(id)
	if !ok || err != nil {
		return nil, err
	}
	return rec.Doc.Clone(), nil
}

// SearchIndexes are what is kept of search indexes, of all collections.
func (e *Engine) SearchIndexes(ctx context.Context) (found []bson.Doc, err error) {
	_, err = e.readSetting(ctx, catalog.SearchIndexesNS, func(r *storage.Reader) (_ bson.Doc, err error) {
		c, err := r.Scan(storage.RecordScan{})
		if err != nil {
			return nil, err
		}
		defer func() { err = errors.Join(err, c.Close()) }()
		for c.Next() {
			found = append(found, c.Record().Doc.Clone())
		}
		return nil, c.Err()
	})
	return found, err
}
