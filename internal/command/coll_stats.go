package command

import (
	"context"

	"github.com/ebbdb/ebb/internal/auth/privilege"
	"github.com/ebbdb/ebb/internal/bson"
	"github.com/ebbdb/ebb/internal/catalog"
	"github.com/ebbdb/ebb/internal/mongoerr"
	"github.com/ebbdb/ebb/internal/namespace"
	"github.com/ebbdb/ebb/internal/storage"
)

func collStatsCommands() []*Command {
	return []*Command{{Name: "collStats", Aliases: []string{"collstats"}, Needs: Needs{OnCollection: actions(privilege.CollStats)}, Doc: "Measures a collection.", ReadConcern: true, Run: collStats}}
}

func collStats(op *Op) (bson.Doc, error) {
	a := op.Args
	ns := a.Collection(op.DB)
	scale := a.scale()
	a.SafeBool("waitForLock", true)
	a.SafeBool("numericOnly", false)
	a.Ignore("verbose", "queryExecStats")
	if err := a.Done(); err != nil {
		return nil, err
	}
	if err := readable(ns); err != nil {
		return nil, err
	}
	b := bson.Build().String("ns", ns.String())
	if err := op.appendStorageStats(op.Ctx, b, ns, scale); err != nil {
		return nil, err
	}
	return b.Doc(), nil
}

// appendStorageStats appends what collStats and $collStats say of how a collection is stored.
func (s *Server) appendStorageStats(ctx context.Context, b *bson.Builder, ns namespace.NS, scale int64) error {
	if scale < 1 {
		return mongoerr.New(mongoerr.BadValue, "'scale' must be >= 1, actual value '%d'", scale)
	}
	view, err := s.Query.Store.View(ctx)
	if err != nil {
		return err
	}
	defer view.Close()
	coll := view.Catalog().Collection(ns)
	if coll == nil { // its buckets are measured as the time series is
		coll = view.Catalog().BehindBuckets(ns)
	}
	if coll == nil {
		b.Int32("size", 0).Number("count", s.views(ns)).Int32("numOrphanDocs", 0).Int32("storageSize", 0).Int32("totalSize", 0).Int32("nindexes", 0).
			Int32("totalIndexSize", 0).Object("indexDetails").End().Object("indexSizes").End().Number("scaleFactor", scale)
		return nil
	}
	if coll.IsView() {
		return mongoerr.New(mongoerr.CommandNotSupportedOnView, "Namespace %s is a view, not a collection", ns)
	}
	r, _ := view.CollectionByID(coll.ID)
	st, err := measure(r)
	if err != nil {
		return err
	}
	if coll.IsTimeSeries() {
		if err := appendSeriesStats(b, r, st); err != nil {
			return err
		}
	}
	appendRecordStats(b, coll, st, scale)
	appendIndexStats(b, coll, st, scale)
	b.Number("scaleFactor", scale)
	return nil
}

// usePowerOf2 is the bit of userFlags that old manuals promise for collections with a TTL index.
const usePowerOf2 = 1

func appendRecordStats(b *bson.Builder, coll *catalog.Collection, st *collectionStats, scale int64) {
	b.Number("size", st.DataBytes/scale)
	if !coll.IsTimeSeries() {
		b.Number("count", st.Documents)
	}
	if st.Stored > 0 && !coll.IsTimeSeries() {
		b.Number("avgObjSize", st.DataBytes/st.Stored)
	}
	b.Int32("numOrphanDocs", 0).Number("storageSize", storageSize(st)/scale).Int32("freeStorageSize", 0).Bool("capped", coll.Options.Capped)
	if coll.Options.Capped {
		b.Number("max", coll.Options.Max).Number("maxSize", coll.Options.Size/scale)
	}
	if hasTTL(coll) {
		b.Int32("userFlags", usePowerOf2)
	}
}

// seriesCounters are what MongoDB counts of the making of buckets, of which there is none here.
var seriesCounters = [...]string{"numBucketInserts", "numBucketUpdates", "numBucketsOpenedDueToMetadata", "numBucketsClosedDueToCount",
	"numBucketsClosedDueToSchemaChange", "numBucketsClosedDueToSize", "numBucketsClosedDueToTimeForward", "numBucketsClosedDueToTimeBackward",
	"numBucketsClosedDueToMemoryThreshold", "numCommits", "numWaits"}

func appendSeriesStats(b *bson.Builder, r *storage.Reader, st *collectionStats) error {
	n, err := r.Dates().Cells()
	if err != nil {
		return err
	}
	b.Object("timeseries").String("bucketsNs", catalog.BucketsName(r.Catalog().NS).String()).Number("bucketCount", n)
	if n > 0 {
		b.Number("avgBucketSize", st.DataBytes/n)
	}
	for _, name := range seriesCounters {
		b.Int64(name, 0)
	}
	b.Number("numMeasurementsCommitted", st.Documents).End()
	return nil
}

func hasTTL(coll *catalog.Collection) bool {
	for _, d := range coll.Indexes {
		if d.TTL {
			return true
		}
	}
	return false
}

func appendIndexStats(b *bson.Builder, coll *catalog.Collection, st *collectionStats, scale int64) {
	b.Int32("nindexes", int32(len(coll.Indexes))).Object("indexDetails")
	for _, d := range coll.Indexes {
		b.Object(d.Name).Object("metadata").Int32("formatVersion", 1).End().End()
	}
	b.End().Array("indexBuilds").End()
	b.Number("totalIndexSize", indexSize(st)/scale).Object("indexSizes")
	for _, i := range st.Indexes {
		b.Number(i.Name, tableSize(i)/scale)
	}
	b.End().Number("totalSize", (storageSize(st)+indexSize(st))/scale)
}
