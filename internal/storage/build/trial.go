package build

import (
	"github.com/ebbdb/ebb/internal/index"
	"github.com/ebbdb/ebb/internal/storage/layout"
)

// maxInTheWay bounds the records that are deleted because an index is built for which they are in the way.
const maxInTheWay = 1 << 20

// Try computes a record's keys in all tables, for a build on trial.
func (w *Work) Try(rec layout.Record) error {
	for _, t := range w.Tables {
		if err := t.try(rec); err != nil {
			return err
		}
	}
	return nil
}

// TryUnique fails when two of the records that were tried have the same key of a unique index.
func (w *Work) TryUnique() error {
	for _, t := range w.Tables {
		if err := t.tryUnique(w.Step); err != nil {
			return err
		}
	}
	return w.Decide()
}

// HiddenInTheWay are the hidden records without which the build would not fail; none when it fails anyway. It builds on trial: nothing
// may have been entered before.
func (w *Work) HiddenInTheWay() (ids []layout.RecordID, err error) {
	r, err := w.View()
	if err != nil {
		return nil, err
	}
	defer r.Close()
	c, err := r.Scan(nil, nil, false)
	if err != nil {
		return nil, err
	}
	defer c.Close()
	for c.Next() {
		rec := c.Record()
		if w.Try(rec) == nil {
			continue
		}
		if !r.IsHidden(rec) || len(ids) == maxInTheWay {
			return nil, nil // the build says what is wrong with it
		}
		ids = append(ids, rec.ID.Clone())
	}
	if c.Err() != nil {
		return nil, c.Err()
	}
	for _, t := range w.Tables {
		more, fails, err := t.hiddenHolders(r)
		if err != nil || fails || len(ids)+len(more) > maxInTheWay {
			return nil, err
		}
		ids = append(ids, more...)
	}
	return ids, nil
}

// try computes a record's keys, and enters those that nobody else may have.
func (t *Table) try(rec layout.Record) error {
	switch {
	case t.HoldsIDs():
		return t.Enter(nil, rec)
	case t.Kind != index.Deadline:
		return t.Compute(rec.Doc)
	}
	return nil
}

// tryUnique has those wait that share a key of a unique index, see CheckWaiting.
func (t *Table) tryUnique(step func() error) error {
	if !t.HoldsIDs() {
		return nil
	}
	if err := t.Finish(); err != nil {
		return err
	}
	next := t.Source(step)
	for {
		if _, _, ok, err := next(); !ok || err != nil {
			return err
		}
	}
}

// hiddenHolders are the hidden records that share a key of a unique table with others; fails says that visible ones share one, or that
// there are too many.
func (t *Table) hiddenHolders(r Records) (ids []layout.RecordID, fails bool, err error) {
	if !t.HoldsIDs() {
		return nil, false, nil
	}
	if err := t.Finish(); err != nil {
		return nil, false, err
	}
	visible := 0
	err = t.Shared(func(id layout.RecordID, begins bool) (more bool, err error) {
		if begins {
			visible = 0
		}
		rec, there, err := r.Get(id)
		switch {
		case err != nil:
			return false, err
		case !there:
		case r.IsHidden(rec):
			ids = append(ids, id.Clone())
		default:
			visible++
		}
		fails = visible > 1 || len(ids) > maxInTheWay
		return !fails, nil
	})
	if err != nil || fails {
		return nil, fails, err
	}
	return ids, false, nil
}
