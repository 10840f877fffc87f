package sweeper

import (
	"context"
	"errors"
	"slices"
	"sync"

	"github.com/ebbdb/ebb/internal/kv"
	"github.com/ebbdb/ebb/internal/storage"
	"github.com/ebbdb/ebb/internal/storage/expiry"
	"github.com/ebbdb/ebb/internal/storage/layout"
)

// An indexCompaction vacuums a long stretch of an index of which many entries are dead, while nobody writes to the collection: the
// living are written, slice after slice, where nobody sees them, and take the place of the stretch when it ends. That costs a
// third of what a transaction does, and the collection's lock is held for a moment only.
//
// The first commit to the collection makes it worthless: the rest of the round is then vacuumed in transactions. What the
// slices have read is what is there at the end because nothing was committed since the beginning; views need not be kept.
type indexCompaction struct {
	expiry.Compaction
	c       storage.Collection // as it was at the beginning
	after   []byte             // where the round stood then
	commits int64              // of the collection, until then
}

// indexCompactions is the one under way in the store, of whatever collection: who begins another ends it.
type indexCompactions struct {
	mu   sync.Mutex // held by who works at it
	open *indexCompaction
}

const (
	// rewrittenBytes is how much is put in place at once.
	rewrittenBytes = 32 << 20
	// rewrittenPerEntry is how many entries are looked at for each that Vacuum may remove: nobody waits for a lock.
	rewrittenPerEntry = 4
)

// begin makes w the one compaction.
func (r *indexCompactions) begin(w *indexCompaction) {
	r.end()
	r.open = w
}

func (r *indexCompactions) end() {
	if r.open != nil {
		r.open.Into.Discard()
	}
	r.open = nil
}

// stop ends it when the store is closed.
func (r *indexCompactions) stop() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.end()
}

// rewrite is a slice of Vacuum, or does nothing: ok is false then. The caller holds the collection's vacuuming.
func (s *Sweeper) rewrite(ctx context.Context, c storage.Collection, at *vacuuming, limit int) (removed int, ok bool, err error) {
	if !s.can.Tables {
		return 0, false, nil
	}
	s.compaction.mu.Lock()
	defer s.compaction.mu.Unlock()
	commits := c.Commits()
	quiet := at.writes == commits
	at.writes = commits
	w, written := at.compaction, c.IsWritten()
	if w != nil && (w != s.compaction.open || w.c != c || w.commits != commits || written) {
		s.giveUp(at)
		return 0, false, nil
	}
	if written { // an open transaction would be waited for at the end, and its commit make it worthless
		return 0, false, nil
	}
	view, err := s.store.View(ctx)
	if err != nil {
		return 0, false, err
	}
	defer view.Close()
	r := c.Read(view)
	t := nextTable(c, at.round.Index)
	if w == nil {
		if first, err := at.begin(r); err != nil || at.contended || t == nil || !quiet && !first {
			return 0, false, err
		}
		if w, err = s.beginCompaction(c, r, t, at, commits); w == nil || err != nil {
			return 0, false, err
		}
	}
	dates := r.Dates()
	dead, err := dates.State.Tombstones()
	if err != nil {
		s.giveUp(at)
		return 0, true, err
	}
	ended, err := w.Slice(ctx, dates.Snapshot, t.Entries, dead, &at.round, limit*rewrittenPerEntry)
	if err == nil && (ended || !at.round.Dense || w.Into.Size() >= rewrittenBytes) {
		removed, err = s.finish(ctx, w, t, at, ended)
	}
	if err != nil {
		s.giveUp(at)
	}
	return removed, true, err
}

// begin begins a round if none is under way. Nobody knows then whether the collection is quiet: the sweep was a commit.
func (c *vacuuming) begin(r *storage.Reader) (first bool, err error) {
	if c.round.Begun != nil {
		return false, nil
	}
	ms, err := r.Dates().State.Tombstones()
	if err != nil || len(ms) == 0 {
		return false, err
	}
	c.round = expiry.Round{Begun: ms.Encode(), Dense: c.round.Dense}
	return true, nil
}

// nextTable is the index with the least number that is not below number.
func nextTable(c storage.Collection, number uint32) (next *expiry.Table) {
	tables := c.Tables()
	for i := range tables {
		if t := &tables[i]; t.ID >= number && (next == nil || t.ID < next.ID) {
			next = t
		}
	}
	return next
}

// beginCompaction begins at what is left of the index, or returns nil when that is not worth it.
func (s *Sweeper) beginCompaction(c storage.Collection, r *storage.Reader, t *expiry.Table, at *vacuuming, commits int64) (*indexCompaction, error) {
	if t.ID > at.round.Index {
		at.round.Index, at.round.After = t.ID, nil
	}
	if entries, err := r.Entries(t.Definition); err != nil || entries < s.Limits.LongStretch {
		return nil, err
	}
	into, err := s.engine.Replace(expiry.Behind(t.Entries, at.round.After))
	if err != nil {
		return nil, err
	}
	w := &indexCompaction{Compaction: expiry.Compaction{Into: into}, c: c, after: slices.Clone(at.round.After), commits: commits}
	s.compaction.begin(w)
	at.compaction = w
	return w, nil
}

// giveUp goes back to where the compaction began, and leaves the rest of the round to transactions.
func (s *Sweeper) giveUp(at *vacuuming) {
	w := at.compaction
	if w == s.compaction.open {
		s.compaction.end()
	}
	at.compaction, at.round.After, at.contended = nil, w.after, true
}

// finish puts what was written in its place, if nobody has written to the collection.
func (s *Sweeper) finish(ctx context.Context, w *indexCompaction, t *expiry.Table, at *vacuuming, ended bool) (removed int, err error) {
	end := append(slices.Clone(at.round.After), 0)
	if ended {
		end = layout.After(layout.TableKey(nil, t.Definition))
	}
	if w.Removed > 0 {
		done, err := s.putInPlace(ctx, w, t, end)
		if err != nil {
			return 0, err
		}
		if !done {
			s.giveUp(at)
			return 0, nil
		}
	}
	s.compaction.end()
	at.compaction = nil
	if ended {
		at.round.Index, at.round.After = t.ID+1, nil
	}
	return w.Removed, nil
}

func (s *Sweeper) putInPlace(ctx context.Context, w *indexCompaction, t *expiry.Table, end []byte) (done bool, err error) {
	if err := w.Into.Seal(end); err != nil {
		return false, err
	}
	unlock, err := s.lockIdle(ctx, w.c)
	if unlock == nil {
		return false, err
	}
	defer unlock()
	if w.c.Commits() != w.commits {
		return false, nil
	}
	note := w.Note(t.ID)
	if err := s.alone(ctx, note.Add); err != nil {
		return false, err
	}
	if err := w.Into.Commit(ctx); err != nil {
		return false, errors.Join(err, s.alone(ctx, note.Undo))
	}
	return true, s.alone(ctx, note.Remove)
}

// alone commits what f does, which no other transaction gets in the way of.
func (s *Sweeper) alone(ctx context.Context, f func(kv.Txn)) error {
	t, err := s.engine.Begin()
	if err != nil {
		return err
	}
	f(t)
	return t.Commit(ctx, kv.Buffered)
}
