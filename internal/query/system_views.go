package query

import (
	"github.com/ebbdb/ebb/internal/bson"
	"github.com/ebbdb/ebb/internal/catalog"
	"github.com/ebbdb/ebb/internal/namespace"
)

// systemViews is the collection in which MongoDB keeps what views are. Here the catalogue does, and the name is itself a
// view, of documents made of the catalogue: on "system.views", which stands for no collection at all.
const systemViews = "system.views"

// viewsOf is the view that shows a database's views, nil when it has none.
func viewsOf(all *catalog.Catalog, ns namespace.NS) *catalog.Collection {
	var docs []bson.Value
	for _, c := range all.Collections(ns.DB) {
		if c.IsView() {
			docs = append(docs, describeView(c))
		}
	}
	if docs == nil {
		return nil
	}
	literal := bson.Build().Object("$documents").Value("$literal", bson.ArrayOf(docs...)).End().Doc()
	options := bson.Build().String("viewOn", systemViews).Value("pipeline", bson.ArrayOf(literal.Value())).Doc()
	return &catalog.Collection{NS: ns, Options: catalog.ReadOptions(options)}
}

func describeView(c *catalog.Collection) bson.Value {
	b := bson.Build().String("_id", c.NS.String()).String("viewOn", c.Options.ViewOn).Value("pipeline", c.Options.Pipeline.ArrayValue())
	if c.Options.Collation != nil {
		b.Document("collation", c.Options.Collation)
	}
	return b.Doc().Value()
}

// below is what a view stands on.
func below(view *catalog.Collection) namespace.NS {
	if view.Options.ViewOn == systemViews && view.NS.Coll == systemViews {
		return namespace.NS{DB: view.NS.DB}
	}
	return namespace.NS{DB: view.NS.DB, Coll: view.Options.ViewOn}
}
