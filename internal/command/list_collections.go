package command

import (
	"crypto/sha1"

	"github.com/ebbdb/ebb/internal/bson"
	"github.com/ebbdb/ebb/internal/catalog"
	"github.com/ebbdb/ebb/internal/namespace"
)

func listCollectionsCommands() []*Command {
	return []*Command{{Name: "listCollections", RawData: true, Needs: Needs{Also: needsListCollections}, Doc: "Lists the collections and views of a database.", ReadConcern: false, Run: listCollections}}
}

func listCollections(op *Op) (bson.Doc, error) {
	a := op.Args
	a.Ignore(op.Name(), "includePendingDrops")
	filter := a.Doc("filter")
	nameOnly := a.Bool("nameOnly", false)
	own := a.Bool("authorizedCollections", false)
	cursor := a.simpleCursor()
	if err := a.Done(); err != nil {
		return nil, err
	}
	call := op.call()
	call.NoNow = true
	match, err := op.Query.Filter(op.Ctx, filter, call)
	if err != nil {
		return nil, err
	}
	var docs []bson.Doc
	for _, row := range collectionRows(op.Query.Store.Catalog(), op.DB, nameOnly) {
		ok, err := match(row)
		if err != nil {
			return nil, err
		}
		if ok && (!own || op.mayAnythingOn(namespace.NS{DB: op.DB, Coll: row.Lookup("name").Str()})) {
			docs = append(docs, row)
		}
	}
	return op.openRows(namespace.NS{DB: op.DB, Coll: "$cmd.listCollections"}, docs, cursor)
}

// collectionRows describes what a database holds; where there are views it holds system.views too, and with each time
// series the collection of its buckets.
func collectionRows(c *catalog.Catalog, db string, nameOnly bool) (rows []bson.Doc) {
	views := false
	for _, coll := range c.Collections(db) {
		views = views || coll.IsView() || coll.IsTimeSeries()
		rows = append(rows, collectionRow(coll, nameOnly))
		if buckets := catalog.BucketsName(coll.NS); coll.IsTimeSeries() && c.Collection(buckets) == nil {
			rows = append(rows, collectionRow(&catalog.Collection{NS: buckets, UUID: coll.UUID, Options: bucketsOptions(coll)}, nameOnly))
		}
	}
	if ns := (namespace.NS{DB: db, Coll: systemViews}); views && c.Collection(ns) == nil {
		rows = append(rows, collectionRow(&catalog.Collection{NS: ns, UUID: derivedUUID(ns), Options: catalog.ReadOptions(nil)}, nameOnly))
	}
	return rows
}

func collectionRow(coll *catalog.Collection, nameOnly bool) bson.Doc {
	b := bson.Build().String("name", coll.NS.Coll).String("type", collectionType(coll))
	if nameOnly {
		return b.Doc()
	}
	b.Document("options", coll.Options.Doc)
	b.Object("info").Bool("readOnly", coll.IsView())
	if !coll.IsView() && collectionType(coll) != "timeseries" {
		b.Binary("uuid", 4, coll.UUID[:])
	}
	b.End()
	if !coll.IsClustered() && listsIDIndex(coll) {
		b.Document("idIndex", idIndexOf(coll))
	}
	return b.Doc()
}

func collectionType(coll *catalog.Collection) string {
	if coll.IsView() {
		return "view"
	}
	if coll.IsTimeSeries() && !coll.IsClustered() {
		return "timeseries"
	}
	return "collection"
}

// bucketsOptions are the options that MongoDB shows of the buckets of a time series.
func bucketsOptions(coll *catalog.Collection) catalog.Options {
	at := coll.Options.TimeSeries.TimeField
	limits := func(b *bson.Builder, name string) {
		b.Object(name).String("bsonType", "object").Array("required").String("0", at).End().
			Object("properties").Object(at).String("bsonType", "date").End().End().End()
	}
	b := bson.Build().String("bsonType", "object").Array("required").String("0", "_id").String("1", "control").String("2", "data").End().
		Object("properties").Object("_id").String("bsonType", "objectId").End().
		Object("control").String("bsonType", "object").Array("required").String("0", "version").String("1", "min").String("2", "max").End().
		Object("properties").Object("version").String("bsonType", "number").End()
	limits(b, "min")
	limits(b, "max")
	b.End().End().Object("data").String("bsonType", "object").End().Object("meta").End().End().Bool("additionalProperties", false)
	o := readOptions(coll.Options.Doc)
	o.set("validator", bson.Build().Document("$jsonSchema", b.Doc()).Doc().Value())
	o.set("clusteredIndex", bson.True)
	return catalog.ReadOptions(o.doc())
}

func idIndexOf(coll *catalog.Collection) bson.Doc {
	if d := coll.IDIndex(); d != nil {
		return d.Spec
	}
	return bson.Build().Int32("v", 2).Object("key").Int32("_id", 1).End().String("name", "_id_").Doc()
}

// derivedUUID is the UUID of something that exists only by name: always the same.
func derivedUUID(ns namespace.NS) (u [16]byte) {
	sum := sha1.Sum([]byte(ns.String()))
	copy(u[:], sum[:])
	u[6] = u[6]&0x0F | 0x50
	u[8] = u[8]&0x3F | 0x80
	return u
}
