package pebblekv

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"github.com/cockroachdb/pebble/v2"

	"github.com/ebbdb/ebb/internal/clock"
	"github.com/ebbdb/ebb/internal/kv/overlay"
)

// reclaimer sees to it that the space of deleted ranges comes back though nothing more is written.
//
// Pebble drops the tables that a range covers when the deletion is flushed. What a compaction was writing just then it
// misses, and the deletion, a few bytes on top of all, gives no cause for another. So some time after a range was deleted
// the reclaimer asks how much Pebble still holds that is deleted, and if that is much has the ranges compacted that take more
// than they should: Pebble's estimate is made when it sees the deletion first, and stays when the tables have gone. As long
// as others write it leaves all to the compactions that they cause.
type reclaimer struct {
	db      *pebble.DB
	clock   clock.Clock
	log     *slog.Logger
	pending chan struct{} // holds one: ranges were deleted
	cancel  context.CancelFunc
	done    chan struct{}

	mu struct {
		sync.Mutex
		ranges ranges // deleted, and not looked after
	}
}

const (
	// reclaimInterval is how long after a deletion the reclaimer looks, and how often at most: longer than a flush takes to
	// be due and done.
	reclaimInterval = flushDelayDeleteRange + 4*time.Second
	// tolerableGarbage is what may stay deleted and stored until other writes drive it out, and how much they write then.
	tolerableGarbage = 2 << 20
	// reclaimedAtOnce is how many ranges are compacted before the reclaimer looks again: the memtable is flushed for each.
	reclaimedAtOnce = 16
)

func startReclaimer(db *pebble.DB, k clock.Clock, log *slog.Logger) *reclaimer {
	ctx, cancel := context.WithCancel(context.Background())
	r := &reclaimer{db: db, clock: k, log: log, pending: make(chan struct{}, 1), cancel: cancel, done: make(chan struct{})}
	go r.run(ctx)
	return r
}

func (r *reclaimer) stop() {
	r.cancel()
	<-r.done
}

// deleted notes deleted ranges, in which so many bytes were put at once.
func (r *reclaimer) deleted(living int, list ...overlay.Range) {
	r.mu.Lock()
	for _, deleted := range list {
		r.mu.ranges = r.mu.ranges.holding(deleted, 0, int64(living))
	}
	if len(r.mu.ranges) > maxRanges {
		r.mu.ranges = r.mu.ranges.closed()
		r.mu.ranges = r.mu.ranges[:min(len(r.mu.ranges), maxRanges)] // the rest waits for other writes
	}
	r.mu.Unlock()
	r.wake()
}

func (r *reclaimer) wake() {
	select {
	case r.pending <- struct{}{}:
	default:
	}
}

func (r *reclaimer) run(ctx context.Context) {
	defer close(r.done)
	for {
		select {
		case <-ctx.Done():
			return
		case <-r.pending:
		}
		written := r.db.Metrics().WAL.BytesIn
		timer := r.clock.NewTimer(reclaimInterval)
		select {
		case <-ctx.Done():
			timer.Stop()
			return
		case <-timer.C():
		}
		r.look(ctx, written)
	}
}

// look compacts what was deleted, once; while Pebble is at work by itself that has to wait. written is what had been when
// the wait began.
func (r *reclaimer) look(ctx context.Context, written uint64) {
	m := r.db.Metrics()
	busy := m.Compact.NumInProgress > 0 || m.Flush.NumInProgress > 0 || m.Table.PendingStatsCollectionCount > 0
	if busy || m.WAL.BytesIn-written > tolerableGarbage {
		r.wake()
		return
	}
	list := r.take()
	if m.Table.Garbage.RangeDeletionsBytesEstimate < tolerableGarbage {
		return
	}
	for _, deleted := range list {
		if r.isGone(deleted) {
			continue
		}
		if err := r.db.Compact(ctx, deleted.Start, deleted.End, false); err != nil && ctx.Err() == nil {
			r.log.Warn("store: deleted ranges could not be compacted", "err", err)
			return
		}
	}
}

// isGone says whether a range takes no more than what was put there.
func (r *reclaimer) isGone(d deletedRange) bool {
	n, err := r.db.EstimateDiskUsage(d.Start, d.End)
	return err == nil && int64(n) < d.living+tolerableGarbage
}

func (r *reclaimer) take() ranges {
	r.mu.Lock()
	defer r.mu.Unlock()
	list := r.mu.ranges.closed()
	n := min(len(list), reclaimedAtOnce)
	r.mu.ranges = list[n:]
	if len(r.mu.ranges) > 0 {
		r.wake()
	}
	return list[:n]
}
