package build

import (
	"errors"

	"github.com/ebbdb/ebb/internal/storage/layout"
)

// maxSkipped bounds the hidden records whose keys cannot be computed.
const maxSkipped = 1000

// skippedRecord is a record whose keys in a table could not be computed.
type skippedRecord struct {
	table *Table
	id    layout.RecordID
}

// Decide fails when a record has no keys, or shares one that is unique.
func (w *Work) Decide() error {
	if err := w.decideSkipped(); err != nil {
		return err
	}
	for _, t := range w.Tables {
		if err := t.CheckWaiting(); err != nil {
			return err
		}
	}
	return nil
}

func (w *Work) decideSkipped() error {
	r, err := w.View()
	if err != nil {
		return err
	}
	defer r.Close()
	return w.eachSkipped(r, func(s skippedRecord) error {
		rec, there, err := r.Get(s.id)
		if err != nil || !there {
			return err
		}
		return s.table.Compute(rec.Doc)
	})
}

// eachSkipped calls f for each record whose keys somebody could not compute at some time.
func (w *Work) eachSkipped(r Records, f func(skippedRecord) error) error {
	for _, s := range w.skipped {
		if err := f(s); err != nil {
			return err
		}
	}
	ctx, snapshot := r.Snapshot()
	for _, t := range w.Tables {
		err := t.EachSkipped(ctx, snapshot, func(id layout.RecordID) error { return f(skippedRecord{t, id}) })
		if err != nil {
			return err
		}
	}
	return nil
}

// InTheWay are the hidden records that share a key of a unique table, and those without keys; none when the build fails without them,
// too.
func (w *Work) InTheWay() (ids []layout.RecordID, err error) {
	r, err := w.View()
	if err != nil {
		return nil, err
	}
	defer r.Close()
	for _, t := range w.Tables {
		fails := errors.New("it fails without them, too")
		err := t.EachWaiting(func(keyString []byte, waiting []layout.RecordID) error {
			first, err := r.Holder(t.EntryKey(nil, keyString, nil))
			if err != nil {
				return err
			}
			all := append([]layout.RecordID{first}, waiting...)
			hidden, err := hiddenAmong(r, all)
			if err == nil && len(all)-len(hidden) > 1 {
				err = fails
			}
			ids = append(ids, hidden...)
			return err
		})
		switch {
		case errors.Is(err, fails):
			return nil, nil
		case err != nil:
			return nil, err
		}
	}
	err = w.eachSkipped(r, func(s skippedRecord) error { ids = append(ids, s.id); return nil })
	return ids, err
}

// hiddenAmong are those of the records that are hidden, or not there any more.
func hiddenAmong(r Records, ids []layout.RecordID) (hidden []layout.RecordID, err error) {
	for _, id := range ids {
		rec, there, err := r.Get(id)
		if err != nil {
			return nil, err
		}
		if !there || r.IsHidden(rec) {
			hidden = append(hidden, id)
		}
	}
	return hidden, nil
}
