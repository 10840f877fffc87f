package command

import (
	"context"
	"math"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/ebbdb/ebb/internal/bson"
	"github.com/ebbdb/ebb/internal/clock"
	"github.com/ebbdb/ebb/internal/mongoerr"
	"github.com/ebbdb/ebb/internal/replset"
	"github.com/ebbdb/ebb/internal/storage/memberlog"
	"github.com/ebbdb/ebb/internal/storage/oplog"
)

// truncateEvery is how often the oplog is looked at: what is written in between is how far it may be over its size.
const truncateEvery = time.Second

// Limits of replSetResizeOplog, which are mongod's.
const (
	minOplogMB = 990
	maxOplogMB = 1 << 30 // a petabyte
)

// truncation is what was done to keep the oplog to its size.
type truncation struct {
	// minHours are the hours that entries stay at least, as the bits of a float64.
	minHours      atomic.Uint64
	micros, count atomic.Int64
}

func (t *truncation) hours() float64 { return math.Float64frombits(t.minHours.Load()) }

// truncateOplog keeps the oplog to its size, and snapshots no longer than they may be.
func (s *Server) truncateOplog(ctx context.Context) error {
	s.Query.Store.TrimPasts(s.snapshotWindow())
	return s.truncate(ctx)
}

func (s *Server) truncate(ctx context.Context) error {
	if s.Replica.View().State != replset.Primary {
		return nil
	}
	keep := oplog.Timestamp(math.MaxUint64)
	if hours := s.truncation.hours(); hours > 0 {
		oldest := clock.Millis(s.Clock)/1000 - int64(hours*3600)
		keep = oplog.NewTimestamp(uint32(min(max(oldest, 0), math.MaxUint32)), 0)
	}
	for more := true; more; {
		began := clock.Wall().Now()
		var entries int64
		var err error
		if entries, more, err = memberlog.Truncate(ctx, s.Query.Store, keep); err != nil || entries == 0 {
			return err
		}
		s.truncation.count.Add(1)
		s.truncation.micros.Add(clock.Since(clock.Wall(), began).Microseconds())
	}
	return nil
}

// oplogSection is how far the oplog reaches; nothing where it cannot be read now.
func (op *Op) oplogSection(b *bson.Builder) {
	oldest, err := memberlog.Oldest(op.Ctx, op.Query.Store)
	if err != nil {
		return
	}
	latest := op.Query.Store.LastLogged()
	b.Timestamp("latestOptime", latest.Seconds(), latest.Counter()).Timestamp("earliestOptime", oldest.Seconds(), oldest.Counter())
}

func (op *Op) oplogTruncationSection(b *bson.Builder) {
	t := &op.truncation
	b.Int64("totalTimeProcessingMicros", 0).String("processingMethod", "scanning").Double("oplogMinRetentionHours", t.hours()).
		Int64("totalTimeTruncatingMicros", t.micros.Load()).Int64("truncateCount", t.count.Load())
}

// replSetResizeOplog changes how large the oplog may be, and how long its entries stay at least. The size is kept; the hours are for
// as long as the server runs, as in mongod.
func replSetResizeOplog(op *Op) (bson.Doc, error) {
	op.Args.Ignore(op.Name())
	size, sized := op.Args.number("size")
	hours, timed := op.Args.number("minRetentionHours")
	if err := op.Args.Done(); err != nil {
		return nil, err
	}
	limit := func(name, verb string, bound, v float64) error {
		return mongoerr.New(51024, "BSON field '%s' value must be %s %s, actual value '%s'", name, verb,
			strconv.FormatFloat(bound, 'g', -1, 64), strconv.FormatFloat(v, 'g', -1, 64))
	}
	switch {
	case !sized && !timed:
		return nil, mongoerr.New(mongoerr.InvalidOptions, "Either size or minRetentionHours must be specified")
	case sized && !(size >= minOplogMB):
		return nil, limit("size", ">=", minOplogMB, size)
	case sized && size > maxOplogMB:
		return nil, limit("size", "<=", maxOplogMB, size)
	case timed && !(hours >= 0):
		return nil, limit("minRetentionHours", ">=", 0, hours)
	case timed && hours > math.MaxInt32:
		return nil, limit("minRetentionHours", "<=", math.MaxInt32, hours)
	}
	if sized {
		if op.follows() {
			return nil, mongoerr.New(mongoerr.NotWritablePrimary, "not primary: the oplog is of the same size at all members")
		}
		if err := memberlog.Resize(op.Ctx, op.Query.Store, int64(size*(1<<20))); err != nil {
			return nil, err
		}
	}
	if timed {
		op.truncation.minHours.Store(math.Float64bits(hours))
	}
	return bson.EmptyDoc, nil
}
