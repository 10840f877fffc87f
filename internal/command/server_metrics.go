package command

import (
	"maps"
	"slices"
	"strings"

	"github.com/ebbdb/ebb/internal/bson"
	"github.com/ebbdb/ebb/internal/catalog"
	"github.com/ebbdb/ebb/internal/kv"
	"github.com/ebbdb/ebb/internal/memory"
)

// metricsSection is serverStatus().metrics.
func (op *Op) metricsSection(b *bson.Builder) {
	t := &op.tally
	if op.Replica != nil && op.Query != nil {
		streams := &op.Query.Streams
		b.Object("changeStreams").Int64("largeEventsFailed", streams.TooLarge.Load()).Int64("largeEventsSplit", streams.Split.Load()).
			Int64("showExpandedEvents", streams.Expanded.Load()).End()
	}
	op.commandMetrics(b.Object("commands"))
	op.cursorMetrics(b.End().Object("cursor"))
	b.End().Object("document").Int64("deleted", t.deleted.Load()).Int64("inserted", t.inserted.Load()).
		Int64("returned", t.returned.Load()).Int64("updated", t.updated.Load()).End()
	b.Object("operation").Int64("scanAndOrder", t.sorts.Load()).Int64("writeConflicts", t.writeConflicts.Load()).End()
	b.Object("queryExecutor").Int64("scanned", t.keysExamined.Load()).Int64("scannedObjects", t.docsExamined.Load()).
		Object("collectionScans").Int64("nonTailable", t.nonTailableScans.Load()).Int64("total", t.collectionScans.Load()).End().End()
	op.queryStats.appendMetrics(b.Object("queryStats"), op.queryStatsBytes())
	b.End()
	b.Object("getLastError").Object("wtime").Int32("num", 0).Int32("totalMillis", 0).End().Int64("wtimeouts", 0).End()
	if op.Replica != nil {
		replicaMetrics(b.Object("repl"))
		b.End()
	}
	b.Object("ttl")
	if op.Expiry != nil {
		op.Expiry.AppendMetrics(b)
	}
	b.End()
}

func (op *Op) commandMetrics(b *bson.Builder) {
	for _, name := range slices.Sorted(maps.Keys(op.table)) {
		c := op.table[name]
		if total := c.calls.total.Load(); total > 0 && c.Name == name {
			b.Object(name).Int64("failed", c.calls.failed.Load()).Int64("total", total).End()
		}
	}
}

func (op *Op) cursorMetrics(b *bson.Builder) {
	open, noTimeout, opened, timedOut := op.Cursors.Counts()
	b.Int64("moreThanOneBatch", op.tally.furtherBatches.Load()).Int64("timedOut", timedOut).Int64("totalOpened", opened)
	b.Object("open").Int64("noTimeout", noTimeout).Int64("pinned", open-int64(len(op.Cursors.Idle()))).Int64("total", open).End()
}

// pebbleSection is what the store says of itself.
func (op *Op) pebbleSection(b *bson.Builder) {
	s, ok := op.engineStats()
	if !ok {
		return
	}
	b.String("engine", s.Engine).Int64("diskBytes", s.DiskBytes).Int64("deletedBytes", s.DeletedBytes).Int64("snapshots", s.Snapshots)
	b.Int64("memTableBytes", s.MemTableBytes).Int64("cacheBytes", s.CacheBytes).Int64("rowCacheBytes", s.RowCacheBytes)
	b.Int64("memTableLimitBytes", s.MemTableLimitBytes).Int64("cacheLimitBytes", s.CacheLimitBytes).Int64("rowCacheLimitBytes", s.RowCacheLimitBytes)
	b.Int64("compactions", s.Compactions).Int64("flushes", s.Flushes)
	b.Int64("deletedRanges", s.DeletedRanges).Int64("removedKeys", s.RemovedKeys)
	b.Int64("stalledMillis", s.Stalled.Milliseconds()).Int64("stalls", s.Stalls)
	b.Bool("readOnly", s.Damage != "")
	if s.Damage != "" {
		b.String("damage", s.Damage)
	}
	if s.Unavailable != "" {
		b.String("unavailable", s.Unavailable)
	}
}

// ebbMemorySection is how the memory beside the store's caches is shared; see the package memory.
func (op *Op) ebbMemorySection(b *bson.Builder) {
	if op.Query == nil {
		return
	}
	s := op.Query.Memory.Stats()
	b.Int64("totalBytes", s.Total).Int64("usedBytes", s.Used).Int64("peakBytes", s.Peak)
	b.Int64("residentBytes", s.Resident).Int64("squeezedBytes", s.Squeezed)
	b.Object("used")
	for kind, bytes := range s.By {
		b.Int64(memory.Kind(kind).String()+"Bytes", bytes)
	}
	b.End().Int64("waiting", s.Waiting).Int64("waits", s.Waits).Int64("refusals", s.Refusals).Int64("reclaimedBytes", s.Reclaimed)
	b.Int64("cursorsEnded", op.Cursors.Sacrificed())
}

func (s *Server) engineStats() (kv.Stats, bool) {
	if s.Query == nil || s.Query.Store == nil {
		return kv.Stats{}, false
	}
	return s.Query.Store.EngineStats(), true
}

// collections is the catalogue's collections and views.
func (op *Op) collections() []*catalog.Collection {
	if op.Query == nil || op.Query.Store == nil {
		return nil
	}
	view, err := op.Query.Store.View(op.Ctx)
	if err != nil {
		return nil // figures are not worth an error
	}
	defer view.Close()
	return view.Catalog().All()
}

// replicaMetrics are those of a member that has nobody to follow and nobody who follows it.
func replicaMetrics(b *bson.Builder) {
	b.Object("apply").Int64("attemptsToBecomeSecondary", 1).Int64("batchSize", 0).Object("batches").Int32("num", 0).Int32("totalMillis", 0).End().Int64("ops", 0).End()
	b.Object("buffer").Int64("count", 0).Int64("maxSizeBytes", 0).Int64("sizeBytes", 0).End()
	b.Object("initialSync").Int64("completed", 0).Int64("failedAttempts", 0).Int64("failures", 0).End()
	b.Object("network").Int64("bytes", 0).Object("getmores").Int32("num", 0).Int32("totalMillis", 0).End().
		Int64("notPrimaryLegacyUnacknowledgedWrites", 0).Int64("notPrimaryUnacknowledgedWrites", 0).Int64("ops", 0).Int64("readersCreated", 0).End()
}

// zeros appends counters that never count.
func zeros(b *bson.Builder, names string) {
	for name := range strings.FieldsSeq(names) {
		b.Int64(name, 0)
	}
}
