package build

import (
	"context"

	"github.com/ebbdb/ebb/internal/kv"
	"github.com/ebbdb/ebb/internal/mongoerr"
	"github.com/ebbdb/ebb/internal/storage/expiryorder"
	"github.com/ebbdb/ebb/internal/storage/layout"
)

// Work is what is done on the tables of one build: the bulk pass over the records there are, and what is decided at the end. It is
// used by one goroutine at a time, but for Progress.
type Work struct {
	Ctx    context.Context
	Tables []*Table
	// Order is how the records lie in the order of expiry; nil where they do not.
	Order *expiryorder.Order
	// View opens a view of the records as they are now.
	View func() (Records, error)
	// Writes counts the commits to the collection, and Alive is why the build has to end, if it has to.
	Writes func() int64
	Alive  func() error
	// Report is told of each tenth of a phase.
	Report   func(done, total int64)
	Progress Progress
	Pace     Pace

	skipped []skippedRecord
}

const (
	// sliceRecords and sliceBytes bound what the bulk pass reads in one view: a view that is open for long keeps dead data
	// from being reclaimed.
	sliceRecords = 20_000
	sliceBytes   = 16 << 20
	// breathRecords is how many records or entries it goes through before it looks at the time.
	breathRecords = 64
)

// Close gives back what the tables hold beside their entries.
func (w *Work) Close() {
	for _, t := range w.Tables {
		t.Close()
	}
}

// Scan puts the entries of all records into the sorters. Records that come while it runs are in the side tables; it ends
// where the collection ended when it began.
func (w *Work) Scan() error {
	total, last, err := w.extent()
	if err != nil {
		return err
	}
	w.Progress.Begin(PhaseScan, total)
	for after := layout.RecordID(nil); last != nil; {
		if after, err = w.scanSome(after, append(last.Clone(), 0)); err != nil {
			return err
		}
		if after == nil {
			break
		}
	}
	for _, t := range w.Tables {
		if err := t.Finish(); err != nil {
			return err
		}
	}
	return nil
}

// extent is how many records there are and which is the last.
func (w *Work) extent() (total int64, last layout.RecordID, err error) {
	r, err := w.View()
	if err != nil {
		return 0, nil, err
	}
	defer r.Close()
	if total, err = r.Count(); err != nil {
		return 0, nil, err
	}
	c, err := r.Scan(nil, nil, true)
	if err != nil {
		return 0, nil, err
	}
	defer c.Close()
	if c.Next() {
		last = c.Record().ID.Clone()
	}
	return total, last, c.Err()
}

// scanSome reads a slice and returns where to go on, nil at the end.
func (w *Work) scanSome(after, high layout.RecordID) (next layout.RecordID, err error) {
	r, err := w.View()
	if err != nil {
		return nil, err
	}
	defer r.Close()
	c, err := r.Scan(after, high, false)
	if err != nil {
		return nil, err
	}
	defer c.Close()
	for n, bytes := 1, 0; c.Next(); n++ {
		rec := c.Record()
		if err := w.enter(r, rec); err != nil {
			return nil, err
		}
		w.Progress.Add(1)
		if bytes += len(rec.Doc); n == sliceRecords || bytes >= sliceBytes {
			w.report()
			return rec.ID.Clone(), nil
		}
		if n%breathRecords == 0 {
			if err := w.breathe(); err != nil {
				return nil, err
			}
		}
	}
	return nil, c.Err()
}

// enter adds a record's entries to all tables. That a hidden record has no keys is decided at the end: it may be gone then.
func (w *Work) enter(r Records, rec layout.Record) error {
	for _, t := range w.Tables {
		err := t.Enter(w.Order, rec)
		if err != nil && w.Ctx.Err() != nil {
			return context.Cause(w.Ctx)
		}
		if err != nil && r.IsHidden(rec) && len(w.skipped) < maxSkipped {
			w.skipped = append(w.skipped, skippedRecord{t, rec.ID.Clone()})
			continue
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// Load brings the sorted entries into the tables.
func (w *Work) Load(engine kv.Engine) error {
	total := int64(0)
	for _, t := range w.Tables {
		total += t.Added()
	}
	w.Progress.Begin(PhaseLoad, total)
	for _, t := range w.Tables {
		if err := LoadPairs(w.Ctx, engine, t.Source(w.Step)); err != nil {
			if w.Ctx.Err() != nil {
				return context.Cause(w.Ctx)
			}
			return err
		}
		t.Close()
		w.report()
	}
	return nil
}

// Step is called for each entry that is loaded.
func (w *Work) Step() error {
	if n := w.Progress.Add(1); n%breathRecords == 0 {
		return w.breathe()
	}
	return nil
}

// breathe is called every few records.
func (w *Work) breathe() error { return w.Pace.Breathe(w.Writes, w.Ctx.Done(), w.Alive) }

func (w *Work) report() {
	if done, total, another := w.Progress.Tenth(); another {
		w.Report(done, total)
	}
}

// CatchUp brings the rows of a generation, which is closed, into the tables; n is how many there were. around runs each
// transaction.
func (w *Work) CatchUp(engine kv.Engine, generation byte, around func(func() error) error) (n int, err error) {
	for _, t := range w.Tables {
		err := t.CatchUp(w.Ctx, engine, generation, func(apply func() error) error {
			return around(func() error {
				if err := w.Alive(); err != nil {
					return err
				}
				return apply()
			})
		}, func(applied int) { n += applied; w.Progress.Add(int64(applied)) })
		if err != nil {
			return 0, err
		}
	}
	return n, nil
}

// Aborted is the error of a build that was ended.
func Aborted(why string) error {
	return mongoerr.New(mongoerr.IndexBuildAborted, "Index build aborted: %s", why)
}
