package command

import (
	"math"
	"slices"

	"github.com/ebbdb/ebb/internal/auth/privilege"
	"github.com/ebbdb/ebb/internal/bson"
	"github.com/ebbdb/ebb/internal/catalog"
	"github.com/ebbdb/ebb/internal/mongoerr"
	"github.com/ebbdb/ebb/internal/namespace"
)

func compactCommands() []*Command {
	return []*Command{
		{Name: "compact", Needs: Needs{OnCollection: actions(privilege.Compact)}, Doc: "Gives back the room of a collection that nothing takes.", Run: compact},
		{Name: "reIndex", Needs: Needs{OnCollection: actions(privilege.ReIndex)}, Doc: "Makes a collection's indexes anew.", Run: reIndex},
	}
}

// compact finds nothing to do: the store compacts by itself all the time.
func compact(op *Op) (bson.Doc, error) {
	a := op.Args
	ns := a.Collection(op.DB)
	dryRun := a.Bool("dryRun", false)
	a.Bool("force", false)
	a.IntIn("freeSpaceTargetMB", 1, math.MaxInt64)
	if err := a.Done(); err != nil {
		return nil, err
	}
	if err := findable(ns); err != nil {
		return nil, err
	}
	switch coll := op.stored(ns); {
	case coll == nil && !(ns.Coll == systemViews && op.hasViews(ns.DB)):
		return nil, mongoerr.New(mongoerr.NamespaceNotFound, "collection does not exist")
	case coll != nil && coll.IsView():
		return nil, mongoerr.New(mongoerr.CommandNotSupportedOnView, "can't compact a view")
	}
	coll := op.stored(ns)
	if coll == nil { // views are kept elsewhere
		return compacted(dryRun, 0), nil
	}
	freed, err := op.compactStored(coll.NS, dryRun)
	return compacted(dryRun, freed/blockBytes*blockBytes), err // whole blocks, as it is told what a table takes
}

func compacted(dryRun bool, freed int64) bson.Doc {
	if dryRun {
		return bson.Build().Number("estimatedBytesFreed", freed).Doc()
	}
	return bson.Build().Number("bytesFreed", freed).Doc()
}

// compactStored gives back what nothing in the collection takes. A dry run knows no more than what it takes on disk beyond all
// of its documents.
func (op *Op) compactStored(ns namespace.NS, dryRun bool) (freed int64, err error) {
	view, err := op.Query.Store.View(op.Ctx)
	if err != nil {
		return 0, err
	}
	r, ok := view.Collection(ns)
	if !ok {
		_ = view.Close()
		return 0, mongoerr.New(mongoerr.NamespaceNotFound, "collection does not exist")
	}
	if dryRun {
		defer view.Close()
		st, err := measure(r)
		if err != nil {
			return 0, err
		}
		return max(0, st.StorageBytes-blocks(st.DataBytes)), nil
	}
	if err := view.Close(); err != nil { // what is gone has to be seen by nobody
		return 0, err
	}
	return r.Compact(op.Ctx)
}

// stored is the collection called ns, or the time series whose buckets would be.
func (s *Server) stored(ns namespace.NS) *catalog.Collection {
	c := s.Query.Store.Catalog()
	if coll := c.Collection(ns); coll != nil {
		return coll
	}
	return c.BehindBuckets(ns)
}

// hasViews says whether a database has a system.views, as listCollections has it: a time series is a view in MongoDB.
func (s *Server) hasViews(db string) bool {
	return slices.ContainsFunc(s.Query.Store.Catalog().Collections(db), func(c *catalog.Collection) bool { return c.IsView() || c.IsTimeSeries() })
}

// views is how many views ns describes: none, unless it is the system.views of a database.
func (s *Server) views(ns namespace.NS) (n int64) {
	if ns.Coll != systemViews {
		return 0
	}
	for _, c := range s.Query.Store.Catalog().Collections(ns.DB) {
		if c.IsView() {
			n++
		}
	}
	return n
}

func reIndex(op *Op) (bson.Doc, error) {
	a := op.Args
	ns := a.Collection(op.DB)
	if err := a.Done(); err != nil {
		return nil, err
	}
	if err := readable(ns); err != nil {
		return nil, err
	}
	if op.Replica != nil {
		return nil, mongoerr.New(mongoerr.IllegalOperation, "reIndex is only allowed on a standalone mongod instance. Cannot reIndex '%s' while replication is active", ns)
	}
	coll, err := op.rebuildIndexes(ns)
	if err != nil {
		return nil, err
	}
	return reIndexed(coll), nil
}

// rebuildIndexes makes a collection's indexes anew, once writes are let through.
func (op *Op) rebuildIndexes(ns namespace.NS) (*catalog.Collection, error) {
	if err := op.enterWrites(); err != nil {
		return nil, err
	}
	defer op.Writes.Leave()
	return op.Query.DDL.RebuildIndexes(op.patiently(), ns)
}

func reIndexed(coll *catalog.Collection) bson.Doc {
	n := int32(len(coll.Indexes))
	b := bson.Build().Int32("nIndexesWas", n).Int32("nIndexes", n).Array("indexes")
	for i, row := range indexRows(coll) {
		b.Document(bson.IndexKey(i), row)
	}
	return b.End().Doc()
}
