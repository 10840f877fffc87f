package ttl

import (
	"context"
	"sync/atomic"

	"github.com/ebbdb/ebb/internal/bson"
	"github.com/ebbdb/ebb/internal/storage/ttlchange"
)

// metrics counts what the monitor has done since the server started.
type metrics struct {
	passes, subPasses                 atomic.Int64
	deletedDocuments, deletedKeys     atomic.Int64
	examinedDocuments, examinedKeys   atomic.Int64
	invalidIndexSkips, durationMicros atomic.Int64

	rests, restMicros     atomic.Int64
	sweeps, swept         atomic.Int64 // documents that were deleted at once, and how often that was
	reclustered, vacuumed atomic.Int64
	// What changes of TTLs deleted, or made visible again, of what was hidden.
	loosened, kept atomic.Int64

	batches, batchDocs, stagedBytes, batchMicros atomic.Int64
}

// AppendMetrics appends the fields of metrics.ttl in serverStatus.
func (m *Monitor) AppendMetrics(b *bson.Builder) {
	c := m.metrics
	b.Int64("collSubpassesIncreasedPriority", 0).
		Int64("deletedDocuments", c.deletedDocuments.Load()).
		Int64("deletedKeys", c.deletedKeys.Load()).
		Int64("durationMicros", c.durationMicros.Load()).
		Int64("examinedDocuments", c.examinedDocuments.Load()).
		Int64("examinedKeys", c.examinedKeys.Load()).
		Int64("invalidTTLIndexSkips", c.invalidIndexSkips.Load()).
		Int64("passes", c.passes.Load()).
		Int64("subPasses", c.subPasses.Load())
	b.Object("ebb")
	m.appendStanding(b)
	m.appendHeld(b)
	b.Double("share", atLeast(m.meter.last(), m.params.leastShare(), 0)).
		Int64("rests", c.rests.Load()).
		Int64("restMicros", c.restMicros.Load()).
		Int64("sweeps", c.sweeps.Load()).
		Int64("sweptDocuments", c.swept.Load()).
		Int64("reclusteredDocuments", c.reclustered.Load()).
		Int64("vacuumedEntries", c.vacuumed.Load()).
		Int64("deletedByCommands", c.loosened.Load()).
		Int64("keptByCommands", c.kept.Load()).
		End()
}

// NoteLoosened counts what a change of TTLs made of documents that were hidden.
func (m *Monitor) NoteLoosened(done ttlchange.Loosened) {
	m.metrics.loosened.Add(done.Deleted)
	m.metrics.kept.Add(done.Kept)
}

// appendStanding appends how far behind sweeps are; nothing when the store cannot be read.
func (m *Monitor) appendStanding(b *bson.Builder) {
	t, err := m.standing(context.Background())
	if err != nil {
		return
	}
	b.Int64("lagMillis", t.lag).Int64("backlog", t.backlog)
	if t.more {
		b.Bool("backlogIsMore", true)
	}
}

// appendHeld appends what holds sweeps up: all of them, and by collection.
func (m *Monitor) appendHeld(b *bson.Builder) {
	if why := m.Held(); why != "" {
		b.String("heldUpBy", why)
	}
	m.AppendHold(b)
	if m.store != nil {
		b.Int64("paused", int64(len(m.PausedIn(nil))))
	}
}

// AppendHold appends where expiry is held (ttlHold), if it is.
func (m *Monitor) AppendHold(b *bson.Builder) {
	if m.store == nil {
		return
	}
	if at, held := m.store.HeldAt(); held {
		b.Object("hold").Date("at", at).End()
	}
}

// AppendBatchedDeletes appends the fields of batchedDeletes in serverStatus.
func (m *Monitor) AppendBatchedDeletes(b *bson.Builder) {
	c := m.metrics
	b.Int64("batches", c.batches.Load()).
		Int64("docs", c.batchDocs.Load()).
		Int64("stagedSizeBytes", c.stagedBytes.Load()).
		Int64("timeInBatchMillis", c.batchMicros.Load()/1000).
		Int64("refetchesDueToYield", 0)
}
