package build

import (
	"github.com/ebbdb/ebb/internal/index"
	"github.com/ebbdb/ebb/internal/storage/layout"
)

// Try computes a record's keys for a build on trial, and enters those that nobody else may have.
func (t *Table) Try(rec layout.Record) error {
	switch {
	case t.HoldsIDs():
		return t.Enter(nil, rec)
	case t.Kind != index.Deadline:
		return t.Compute(rec.Doc)
	}
	return nil
}

// TryUnique has those wait that share a key of a unique index, see CheckWaiting.
func (t *Table) TryUnique(step func() error) error {
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

// HiddenHolders are the hidden records, up to most, that share a key of a unique table with others; fails says that visible ones
// share one, or that there are more. seen says whether a record is stored, and whether it is hidden.
func (t *Table) HiddenHolders(seen func(layout.RecordID) (there, hidden bool, err error), most int) (ids []layout.RecordID, fails bool, err error) {
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
		there, hidden, err := seen(id)
		switch {
		case err != nil:
			return false, err
		case !there:
		case hidden:
			ids = append(ids, id.Clone())
		default:
			visible++
		}
		fails = visible > 1 || len(ids) > most
		return !fails, nil
	})
	if err != nil || fails {
		return nil, fails, err
	}
	return ids, false, nil
}
