package command

import (
	"github.com/ebbdb/ebb/internal/auth/privilege"
	"github.com/ebbdb/ebb/internal/bson"
	"github.com/ebbdb/ebb/internal/catalog"
	"github.com/ebbdb/ebb/internal/mongoerr"
	"github.com/ebbdb/ebb/internal/namespace"
)

func listIndexesCommands() []*Command {
	return []*Command{{Name: "listIndexes", RawData: true, Needs: Needs{OnCollection: actions(privilege.ListIndexes)}, Doc: "Lists the indexes of a collection.", Run: listIndexes}}
}

func listIndexes(op *Op) (bson.Doc, error) {
	a := op.Args
	ns, err := op.collectionOrUUID(a)
	if err != nil {
		return nil, err
	}
	cursor := a.simpleCursor()
	uuids := a.SafeBool("includeBuildUUIDs", false)
	wrapped := a.SafeBool("includeIndexBuildInfo", false)
	if uuids && wrapped {
		a.Fail(invalidOptions("The includeBuildUUIDs flag and includeBuildIndexInfo flag cannot both be set to true"))
	}
	a.Ignore("isTimeseriesNamespace")
	if err := a.Done(); err != nil {
		return nil, err
	}
	if err := readable(ns); err != nil {
		return nil, err
	}
	coll := op.stored(ns)
	switch {
	case coll == nil && ns.Coll == systemViews && op.hasViews(ns.DB):
		coll = &catalog.Collection{NS: ns}
		return op.openRows(ns, []bson.Doc{idIndexOf(coll)}, cursor)
	case coll == nil:
		return nil, mongoerr.New(mongoerr.NamespaceNotFound, "ns does not exist: %s", ns)
	case coll.IsView():
		return nil, mongoerr.New(mongoerr.CommandNotSupportedOnView, "Namespace %s is a view, not a collection", ns)
	}
	rows := indexRows(coll)
	if wrapped {
		for i, spec := range rows {
			rows[i] = bson.Build().Document("spec", spec).Doc()
		}
	}
	rows = append(rows, buildingRows(op.Query.DDL.Builds(coll.ID), uuids, wrapped)...)
	return op.openRows(ns, rows, cursor)
}

// collectionOrUUID reads the command's own field, which is a collection's name or its UUID.
func (op *Op) collectionOrUUID(a *Args) (namespace.NS, error) {
	key := op.Name()
	if v := a.Value(key); !isUUID(v) {
		return a.Collection(op.DB), a.Err()
	}
	u, ok := a.UUID(key)
	if !ok {
		return namespace.NS{}, a.Err()
	}
	if c := op.Query.Store.Catalog().ByUUID(u); c != nil && c.NS.DB == op.DB {
		return c.NS, nil
	}
	return namespace.NS{}, mongoerr.New(mongoerr.NamespaceNotFound, "Unable to resolve a collection by its UUID in database %s", op.DB)
}

func isUUID(v bson.Value) bool {
	if v.Type != bson.TypeBinary {
		return false
	}
	subtype, _ := v.Binary()
	return subtype == 4
}

// indexRows describes a collection's indexes; a clustered collection's own comes first.
func indexRows(coll *catalog.Collection) (rows []bson.Doc) {
	if coll.IsClustered() {
		spec := coll.Options.Doc.Lookup("clusteredIndex")
		if spec.Type == bson.TypeObject {
			rows = append(rows, bson.Build().Fields(spec.Doc()).Bool("clustered", true).Doc())
		}
	}
	for _, d := range coll.Indexes {
		if !d.IsID() || listsIDIndex(coll) {
			rows = append(rows, d.Listed())
		}
	}
	return rows
}

// listsIDIndex says whether coll shows an index on _id. MongoDB's system.profile has none.
func listsIDIndex(coll *catalog.Collection) bool {
	return !coll.IsView() && !coll.IsTimeSeries() && coll.NS.Coll != systemProfile
}
