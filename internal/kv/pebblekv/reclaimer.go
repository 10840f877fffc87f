package pebblekv

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/ebbdb/ebb/internal/clock"
	"github.com/ebbdb/ebb/internal/kv"
	"github.com/ebbdb/ebb/internal/kv/deleted"
)

// reclaimer sees to it that the space of deleted ranges comes back.
//
// Pebble drops the tables that a range covers when the deletion is flushed. What a compaction was writing just then it
// misses, and what lies in level 0 as the deletion does; and the deletion, a few bytes on top of all, gives no cause for
// another. So some time after a range was deleted the reclaimer asks how much it still takes, and if that is much excises it,
// or has it compacted where that is not possible. In a store where little is written it flushes the deletion and excises
// what takes much sooner: what a compaction makes of the dead in level 0 meanwhile is thrown away. As long as others write
// it leaves all to the compactions that they cause, until too much of the store is deleted: where as much ends as is
// written, level 0 may be so shallow that nothing in it is ever merged.
type reclaimer struct {
	commits *committer
	db      *pebble.DB
	disk    vfs.FS
	dir     string
	clock   clock.Clock
	log     *slog.Logger
	pending chan struct{} // holds one: ranges were deleted
	cancel  context.CancelFunc
	done    chan struct{}
	opened  sync.WaitGroup // goOn
	limit   int64          // crowdingGarbage

	mu struct {
		sync.Mutex
		ranges deleted.Ranges // deleted, and not looked after
		told   time.Time      // when it was last said that there is no room for what would give room
	}
}

const (
	// reclaimInterval is how long after a deletion the reclaimer looks, and how often at most: longer than a flush takes to
	// be due and done.
	reclaimInterval = flushDelayDeleteRange + 4*time.Second
	// exciseDelay is how long after a deletion what takes much is excised, if nothing else goes on.
	exciseDelay = flushDelayDeleteRange - 3*time.Second
	// tolerableGarbage is what may stay deleted and stored until other writes drive it out, and how much they write then.
	tolerableGarbage = 2 << 20
	// excisedBytes is how much a range takes at least that is excised.
	excisedBytes = 8 << 20
	// crowdingGarbage is how much may stay deleted while others write, and crowdingShare which part of the store: if it is
	// more than one in so many bytes.
	crowdingGarbage = 32 << 20
	crowdingShare   = 4
	// foundBytes is what may be gone through for deletions that a store was opened with, however much of it lives.
	foundBytes = 256 << 20
	// reclaimedAtOnce is how many ranges are removed before the reclaimer looks again: the memtable is flushed for each.
	reclaimedAtOnce = 16
	// maxGaps is how many keys that live are gone by at most to find what may be excised between them.
	maxGaps = 10_000
)

// newReclaimer is one that looks when it is told to.
func newReclaimer(c *committer, dir string, o Options, limit int64) *reclaimer {
	return &reclaimer{commits: c, db: c.db, disk: o.FS, dir: dir, clock: o.Clock, log: o.Logger, limit: limit, pending: make(chan struct{}, 1), done: make(chan struct{})}
}

// startReclaimer is for a store in which something may have been found.
func startReclaimer(c *committer, dir string, o Options, found bool) *reclaimer {
	r := newReclaimer(c, dir, o, crowdingGarbage)
	ctx, cancel := context.WithCancel(context.Background())
	r.cancel = cancel
	if found {
		r.opened.Go(func() { r.goOn(ctx) })
	}
	go r.run(ctx)
	return r
}

// goOn flushes what the store found in its log when it was opened. As long as that is in memory, what it deletes is stored, and
// nobody may write more for long.
func (r *reclaimer) goOn(ctx context.Context) {
	if clock.Wait(ctx, r.clock, exciseDelay) != nil || ctx.Err() != nil {
		return
	}
	err := r.flush(ctx)
	if err == nil {
		err = r.findDeleted()
	}
	r.warn(ctx, err)
}

// findDeleted notes the ranges whose deletions were not looked after before the store was opened. That is told by the tables
// that hold the deletions. What lies under one is worth to be gone through where it is little, or garbage to a good part as
// Pebble reckons it, who leaves level 0 out.
func (r *reclaimer) findDeleted() error {
	passes(func() bool { return r.db.Metrics().Table.PendingStatsCollectionCount > 0 }, flushTries)
	garbage := int64(r.db.Metrics().Table.Garbage.RangeDeletionsBytesEstimate)
	levels, err := r.db.SSTables(pebble.WithProperties())
	if err != nil {
		return fmt.Errorf("pebblekv: list tables: %w", err)
	}
	for _, tables := range levels {
		for i := range tables {
			t := &tables[i]
			if t.Properties == nil || t.Properties.NumRangeDeletions == 0 {
				continue
			}
			d := deleted.Range{Range: kv.Range{Start: bytes.Clone(t.Smallest.UserKey), End: after(t.Largest.UserKey)}}
			if r.stored(d) <= max(foundBytes, garbage*crowdingShare) {
				r.note(d)
			}
		}
	}
	return nil
}

func (r *reclaimer) stop() {
	r.cancel()
	<-r.done
	r.opened.Wait()
}

// deleted notes deleted ranges, in which so many bytes were put at once.
func (r *reclaimer) deleted(living int, list ...kv.Range) {
	for _, gone := range list {
		r.note(deleted.Range{Range: gone, Living: int64(living)})
	}
}

func (r *reclaimer) note(d deleted.Range) {
	r.mu.Lock()
	r.mu.ranges = r.mu.ranges.Holding(d)
	if len(r.mu.ranges) > deleted.MaxRanges {
		r.mu.ranges = r.mu.ranges.Closed()
		r.mu.ranges = r.mu.ranges[:min(len(r.mu.ranges), deleted.MaxRanges)] // the rest waits for other writes
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
		if clock.Wait(ctx, r.clock, exciseDelay) != nil {
			return
		}
		if r.commits.failure.writable() != nil {
			continue
		}
		r.lookEarly(ctx, written)
		if clock.Wait(ctx, r.clock, reclaimInterval-exciseDelay) != nil {
			return
		}
		r.look(ctx, written)
	}
}

// lookEarly excises what takes much while there is nothing else to do. All else, and what somebody reads, is left to look.
func (r *reclaimer) lookEarly(ctx context.Context, written uint64) {
	if m := r.db.Metrics(); isAtWork(m) || m.WAL.BytesIn-written > tolerableGarbage {
		return
	}
	large := r.large()
	if len(large) == 0 || !r.commits.isFree() {
		return
	}
	err := r.flush(ctx)
	if err == nil {
		_, _, err = r.commits.excise(large...)
	}
	r.warn(ctx, err)
}

// flush writes what is in memory to tables, without what is deleted. As long as that is in memory, to see that nothing is
// left of it takes long, and what is cut off is queued behind it.
func (r *reclaimer) flush(ctx context.Context) error {
	flushed, err := r.db.AsyncFlush()
	if err != nil {
		return fmt.Errorf("pebblekv: flush: %w", err)
	}
	select {
	case <-flushed:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (r *reclaimer) warn(ctx context.Context, err error) {
	if err == nil || ctx.Err() != nil {
		return
	}
	if isFull(err) && !r.isTime(r.clock.Now()) { // it is tried again and again
		return
	}
	r.log.Warn("store: the space of deleted ranges could not be won back", "err", err)
}

// isTime says whether it is time to say once more that there is no room.
func (r *reclaimer) isTime(now time.Time) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.mu.told.IsZero() && now.Sub(r.mu.told) < toldEvery {
		return false
	}
	r.mu.told = now
	return true
}

// large are deleted ranges that are worth to be excised, no more than are removed at once.
func (r *reclaimer) large() (large []kv.Range) {
	r.mu.Lock()
	list := r.mu.ranges.Closed()
	r.mu.Unlock()
	for _, deleted := range list {
		if len(large) < reclaimedAtOnce && r.stored(deleted) >= excisedBytes {
			large = append(large, deleted.Range)
		}
	}
	return large
}

// look removes what was deleted, once; while the store is at work that has to wait, unless too much has come together.
// written is what had been when the wait began.
func (r *reclaimer) look(ctx context.Context, written uint64) {
	m := r.db.Metrics()
	if isAtWork(m) {
		r.wake() // whoever compacts the range would have to begin anew
		return
	}
	busy := m.WAL.BytesIn-written > tolerableGarbage
	if busy {
		if n := r.garbage(); n <= r.limit || n*crowdingShare <= m.Total().TablesSize {
			r.wake()
			return
		}
	}
	list := r.take()
	slices.SortFunc(list, func(a, b deleted.Range) int { return cmp.Compare(r.stored(b), r.stored(a)) }) // what is gone costs the next nothing
	var err error
	for _, deleted := range list {
		err = errors.Join(err, r.remove(ctx, deleted))
	}
	if !busy { // or else what cut tables hold will soon be compacted with what others write
		err = errors.Join(err, r.rewriteCut(ctx))
	}
	if isFull(err) {
		r.wake()
	}
	r.warn(ctx, err)
}

func isAtWork(m *pebble.Metrics) bool {
	return m.Compact.NumInProgress > 0 || m.Flush.NumInProgress > 0 || m.Table.PendingStatsCollectionCount > 0
}

// remove excises a range if it is long, or what is long between the keys that are left in it, and has it compacted if much remains. A disk that
// has no room for that may have some later.
func (r *reclaimer) remove(ctx context.Context, d deleted.Range) error {
	n := r.stored(d)
	if n < tolerableGarbage {
		return nil
	}
	if n >= excisedBytes {
		gaps, err := r.gaps(d)
		if err != nil {
			return err
		}
		switch _, isRead, err := r.commits.excise(gaps...); {
		case err != nil:
			return err
		case isRead:
			r.note(d)
			return nil
		case r.stored(d) < tolerableGarbage:
			return nil
		}
	}
	err := r.compact(ctx, d.Start, d.End)
	if isFull(err) {
		r.note(d)
	}
	return err
}

// gaps are the parts of a range in which nothing is left that are worth to be excised, no more than are removed at once. Little that lives beside
// what was deleted would otherwise have all of it written anew, which takes room before it gives any.
func (r *reclaimer) gaps(d deleted.Range) (gaps []kv.Range, err error) {
	it, err := r.db.NewIter(&pebble.IterOptions{LowerBound: d.Start, UpperBound: d.End})
	if err != nil {
		return nil, reading("look for gaps", err)
	}
	start, lives := bytes.Clone(d.Start), it.First()
	for n := 0; len(gaps) < reclaimedAtOnce; n++ {
		gap := kv.Range{Start: start, End: d.End}
		if lives {
			gap.End = it.Key()
		}
		if r.stored(deleted.Range{Range: gap}) >= excisedBytes {
			gaps = append(gaps, kv.Range{Start: bytes.Clone(gap.Start), End: bytes.Clone(gap.End)})
		}
		if !lives || n == maxGaps {
			break
		}
		start = append(append(start[:0], it.Key()...), 0)
		lives = it.Next()
	}
	if err := errors.Join(it.Error(), it.Close()); err != nil {
		return nil, reading("look for gaps", err)
	}
	return gaps, nil
}

func (r *reclaimer) compact(ctx context.Context, start, end []byte) error {
	if err := r.db.Compact(ctx, start, end, false); err != nil {
		return reading("compact", err)
	}
	return nil
}

// rewriteCut has tables written anew of which so much was cut off that their files hold much that is gone. Pebble does so only
// when it compacts them for another reason; by itself it would move them. So they are given one.
func (r *reclaimer) rewriteCut(ctx context.Context) error {
	if m := r.db.Metrics(); int64(m.Table.BackingTableSize)-int64(m.VirtualSize()) < tolerableGarbage {
		return nil
	}
	cut, err := r.cutTables()
	if err != nil {
		return err
	}
	for _, key := range cut {
		if err := r.commits.deleteNothing(after(key)); err != nil {
			return err
		}
	}
	for _, key := range cut {
		if err := r.compact(ctx, key, after(after(key))); err != nil {
			return err
		}
	}
	return nil
}

// cutTables are the first keys of those tables whose files hold most that is gone, the worst first.
func (r *reclaimer) cutTables() (keys [][]byte, err error) {
	levels, err := r.db.SSTables()
	if err != nil {
		return nil, fmt.Errorf("pebblekv: list tables: %w", err)
	}
	type file struct {
		waste int64
		keys  [][]byte
	}
	files := map[string]*file{}
	for _, tables := range levels {
		for i := range tables {
			t := &tables[i]
			if !t.Virtual {
				continue
			}
			name := t.BackingSSTNum.String() + ".sst"
			f := files[name]
			if f == nil {
				info, err := r.disk.Stat(r.disk.PathJoin(r.dir, name))
				if err != nil {
					continue // it has gone since
				}
				f = &file{waste: info.Size()}
				files[name] = f
			}
			f.waste -= int64(t.Size)
			f.keys = append(f.keys, bytes.Clone(t.Smallest.UserKey))
		}
	}
	worst := slices.SortedFunc(maps.Values(files), func(a, b *file) int { return cmp.Compare(b.waste, a.waste) })
	for _, f := range worst[:min(len(worst), reclaimedAtOnce)] {
		if f.waste >= tolerableGarbage/reclaimedAtOnce {
			keys = append(keys, f.keys...)
		}
	}
	return keys, nil
}

func after(key []byte) []byte { return append(bytes.Clone(key), 0) }

// garbage is about how much is deleted and stored.
func (r *reclaimer) garbage() (n int64) {
	r.mu.Lock()
	list := r.mu.ranges.Closed()
	r.mu.Unlock()
	for _, deleted := range list {
		n += r.stored(deleted)
	}
	return n
}

// stored is about how much a range takes that was deleted; nothing if that cannot be told.
func (r *reclaimer) stored(d deleted.Range) int64 {
	if string(d.Start) >= string(d.End) {
		return 0
	}
	n, err := r.db.EstimateDiskUsage(d.Start, d.End)
	if err != nil {
		return 0
	}
	return max(0, int64(n)-d.Living)
}

func (r *reclaimer) take() deleted.Ranges {
	r.mu.Lock()
	defer r.mu.Unlock()
	list := r.mu.ranges.Closed()
	n := min(len(list), reclaimedAtOnce)
	r.mu.ranges = list[n:]
	if len(r.mu.ranges) > 0 {
		r.wake()
	}
	return list[:n]
}
