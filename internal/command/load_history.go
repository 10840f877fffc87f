package command

import (
	"context"
	"time"

	"github.com/ebbdb/ebb/internal/bson"
	"github.com/ebbdb/ebb/internal/clock"
	"github.com/ebbdb/ebb/internal/host"
	"github.com/ebbdb/ebb/internal/namespace"
)

// local.ebb_history is what the last hours were like: a document now and then, in a capped collection. It is for people who look at a
// server after something has happened, and where nobody collects its figures. It goes by the difference of counters that there are anyway.

const (
	// loadHistoryBytes and loadHistoryDocuments bound local.ebb_history: a day of minutes.
	loadHistoryBytes     = 1 << 20
	loadHistoryDocuments = 1440
	// loadHistoryName is the parameter that says how often there is a document.
	loadHistoryName = "ebbHistoryIntervalSecs"
	// maxLoadHistorySecs bounds it; loadHistoryOff is how often it is looked at while it is 0.
	maxLoadHistorySecs = 24 * 3600
	loadHistoryOff     = time.Minute
)

var loadHistoryNS = namespace.NS{DB: "local", Coll: "ebb_history"}

// loadSample are the counters that a document is the difference of.
type loadSample struct {
	ran                                     time.Duration // monotonic
	cpu                                     time.Duration
	deleted, sweeps, passes                 int64
	inserts, queries, updates, deletes, all int64
	reads, readMicros                       int64
}

// KeepHistory writes local.ebb_history until the server is closed.
func (s *Server) KeepHistory() {
	ctx, stop := context.WithCancel(context.Background())
	before := s.stop
	s.stop = func() { before(); stop() }
	s.done.Go(func() {
		last := s.sampleLoad()
		for {
			every := time.Duration(s.setting(loadHistoryName)) * time.Second
			off := every == 0
			if off {
				every = loadHistoryOff
			}
			if clock.Wait(ctx, s.Clock, every) != nil {
				return
			}
			if off {
				last = s.sampleLoad()
				continue
			}
			_ = s.round(ctx, "The history of the server's load could not be written", func(ctx context.Context) error {
				last = s.recordLoad(ctx, last)
				return nil
			})
		}
	})
}

func (s *Server) sampleLoad() (l loadSample) {
	l.ran = clock.Monotonic(s.Clock)
	l.cpu = host.LookAtProcessors().Used
	l.inserts, l.queries, l.updates, l.deletes = s.counts.inserts.Load(), s.counts.queries.Load(), s.counts.updates.Load(), s.counts.deletes.Load()
	l.all = s.counts.commands.Load() + s.counts.getMores.Load()
	l.reads, l.readMicros = s.tally.reads.count.Load(), s.tally.reads.micros.Load()
	if s.TTL != nil {
		m := s.expiryFigures()
		l.deleted, l.passes = m.Lookup("deletedDocuments").TruncInt64(), m.Lookup("passes").TruncInt64()
		l.sweeps = m.Lookup("ebb").Doc().Lookup("sweeps").TruncInt64()
	}
	return l
}

// expiryFigures is metrics.ttl of serverStatus.
func (s *Server) expiryFigures() bson.Doc {
	b := bson.Build()
	s.TTL.AppendMetrics(b)
	return b.Doc()
}

// recordLoad writes one document, unless nothing may be written now, and returns what the next is counted from.
func (s *Server) recordLoad(ctx context.Context, last loadSample) loadSample {
	if !s.Writes.TryEnter() {
		return last // and the next tells of both
	}
	defer s.Writes.Leave()
	now := s.sampleLoad()
	err := s.createCapped(ctx, loadHistoryNS, loadHistoryBytes, loadHistoryDocuments)
	if err == nil {
		err = s.Query.Append(ctx, loadHistoryNS, s.loadDocument(last, now), clock.Millis(s.Clock))
	}
	if err != nil {
		if !s.isStopped() {
			s.Log.Debug("The history of the server's load could not be written", "namespace", loadHistoryNS.String(), "error", err.Error())
		}
		return last
	}
	return now
}

func (s *Server) loadDocument(last, now loadSample) bson.Doc {
	took := now.ran - last.ran
	b := bson.Build().Date("at", clock.Millis(s.Clock)).Double("seconds", took.Seconds())
	if s.TTL != nil {
		figures := s.expiryFigures().Lookup("ebb").Doc()
		for _, name := range [...]string{"lagMillis", "backlog", "backlogIsMore", "heldUpBy", "paused"} {
			if v := figures.Lookup(name); !v.IsMissing() && (name != "paused" || v.TruncInt64() > 0) {
				b.Value(name, v)
			}
		}
		b.Int64("deleted", now.deleted-last.deleted).Int64("sweeps", now.sweeps-last.sweeps).Int64("passes", now.passes-last.passes)
	}
	b.Int64("inserted", now.inserts-last.inserts).Int64("updated", now.updates-last.updates).Int64("removed", now.deletes-last.deletes).
		Int64("queried", now.queries-last.queries).Int64("commands", now.all-last.all).
		Int64("reads", now.reads-last.reads).Int64("readMicros", now.readMicros-last.readMicros)
	if s.Traffic != nil {
		b.Int64("connections", s.Traffic().Current)
	}
	if stats, ok := s.engineStats(); ok {
		b.Int64("storageBytes", stats.DiskBytes)
	}
	if s.DBPath != "" {
		b.Int64("freeBytes", FreeDisk(s.DBPath))
	}
	b.Int64("residentBytes", host.Resident())
	if took > 0 {
		b.Double("cpuPercent", 100*(now.cpu-last.cpu).Seconds()/took.Seconds())
	}
	return b.Doc()
}
