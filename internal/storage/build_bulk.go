package storage

import (
	"context"
	"slices"

	"github.com/ebbdb/ebb/internal/storage/build"
)

const (
	// sliceRecords and sliceBytes bound what the bulk pass reads in one view: a view that is open for long keeps dead data
	// from being reclaimed.
	sliceRecords = 20_000
	sliceBytes   = 16 << 20
	// breathRecords is how many records or entries it goes through before it looks at the time.
	breathRecords = 64
)

// clearTheWay deletes beside writers what is hidden, so that it need not be looked at. What is spared is deleted at the end, where
// it is in the way. What a TTL hides that gets longer with the build counts as deleted for that, as it would be then.
func (b *Build) clearTheWay(p indexPlan, l *loosening) error {
	c := b.store.current.Load().collections[b.Collection]
	if err := b.alive(); err != nil || c == nil || b.how.Keep {
		return err
	}
	next, _ := p.Retime(c.Collection)
	l.toBe(c, next)
	now := b.store.hidingTime()
	for _, rule := range b.store.unspared(c) {
		n, err := b.store.deleteDue(b.ctx, c, rule, now, besideWriters)
		if err != nil {
			return err
		}
		if slices.Contains(l.rules, rule) {
			l.done.Deleted += n
		}
	}
	return nil
}

// scan puts the entries of all records into the sorters. Records that come while it runs are in the side tables; it ends
// where the collection ended when it began.
func (b *Build) scan() error {
	total, last, err := b.extent()
	if err != nil {
		return err
	}
	b.progress.Begin(build.PhaseScan, total)
	for after := RecordID(nil); last != nil; {
		if after, err = b.scanSome(RecordScan{After: after, High: append(last.Clone(), 0)}); err != nil {
			return err
		}
		if after == nil {
			break
		}
	}
	for _, t := range b.tables {
		if err := t.Finish(); err != nil {
			return err
		}
	}
	return nil
}

// extent is how many records there are and which is the last.
func (b *Build) extent() (total int64, last RecordID, err error) {
	v, r, err := b.view()
	if err != nil {
		return 0, nil, err
	}
	defer v.Close()
	if total, err = r.Stored(); err != nil {
		return 0, nil, err
	}
	c, err := r.Unhidden().Scan(RecordScan{Reverse: true})
	if err != nil {
		return 0, nil, err
	}
	defer c.Close()
	if c.Next() {
		last = c.Record().ID.Clone()
	}
	return total, last, c.Err()
}

// view reads the collection, whatever it is called by now.
func (b *Build) view() (*View, *Reader, error) {
	v, err := b.store.View(b.ctx)
	if err != nil {
		return nil, nil, err
	}
	r, ok := v.CollectionByID(b.Collection)
	if !ok {
		_ = v.Close()
		return nil, nil, aborted("collection dropped")
	}
	return v, r, nil
}

// scanSome reads a slice and returns where to go on, nil at the end.
func (b *Build) scanSome(s RecordScan) (next RecordID, err error) {
	v, r, err := b.view()
	if err != nil {
		return nil, err
	}
	defer v.Close()
	c, err := r.Unhidden().Scan(s)
	if err != nil {
		return nil, err
	}
	defer c.Close()
	for n, bytes := 1, 0; c.Next(); n++ {
		rec := c.Record()
		if err := b.enter(r, rec); err != nil {
			return nil, err
		}
		b.progress.Add(1)
		if bytes += len(rec.Doc); n == sliceRecords || bytes >= sliceBytes {
			b.report()
			return rec.ID.Clone(), nil
		}
		if n%breathRecords == 0 {
			if err := b.breathe(); err != nil {
				return nil, err
			}
		}
	}
	return nil, c.Err()
}

// enter adds a record's entries to all tables. That a hidden record has no keys is decided at the end: it may be gone then.
func (b *Build) enter(r *Reader, rec Record) error {
	for _, t := range b.tables {
		err := t.Enter(b.collection.order, rec)
		if err != nil && b.ctx.Err() != nil {
			return context.Cause(b.ctx)
		}
		if err != nil && r.hidden(rec) && len(b.skipped) < maxSkipped {
			b.skipped = append(b.skipped, skippedRecord{t, rec.ID.Clone()})
			continue
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// load brings the sorted entries into the tables.
func (b *Build) load() error {
	total := int64(0)
	for _, t := range b.tables {
		total += t.Added()
	}
	b.progress.Begin(build.PhaseLoad, total)
	for _, t := range b.tables {
		if err := build.LoadPairs(b.ctx, b.store.engine, t.Source(b.step)); err != nil {
			if b.ctx.Err() != nil {
				return context.Cause(b.ctx)
			}
			return err
		}
		t.Close()
		b.report()
	}
	return nil
}

// step is called for each entry that is loaded.
func (b *Build) step() error {
	if n := b.progress.Add(1); n%breathRecords == 0 {
		return b.breathe()
	}
	return nil
}
