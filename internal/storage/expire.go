package storage

import (
	"github.com/ebbdb/ebb/internal/storage/layout"
	"github.com/ebbdb/ebb/internal/storage/meaning"
	"github.com/ebbdb/ebb/internal/ttl/policy"
)

// ExpireMany deletes those of the records with the ids that have expired by the rule at the transaction's now, looking at the documents
// and at the rule as they are in the transaction, and that may be deleted: while deleting is paused, or in its grace, none is. It
// calls examined after each with what was found (no document when there is none any more) and whether it was deleted, until
// examined returns false. An id that is given again is examined again, and not there.
func (w *Writer) ExpireMany(rule *policy.Rule, ids []RecordID, examined func(rec Record, deleted bool) (more bool)) error {
	return w.expireMany(rule, ids, false, examined)
}

// expireMany is ExpireMany; all deletes also what that leaves alone for now.
func (w *Writer) expireMany(rule *policy.Rule, ids []RecordID, all bool, examined func(rec Record, deleted bool) (more bool)) error {
	rule, ok := w.c.rules.Counterpart(rule)
	if !ok {
		ids = nil
	}
	found, err := w.Unhidden().GetMany(ids)
	if err != nil {
		return err
	}
	gone := make(map[string]struct{}, len(ids))
	for i, rec := range found {
		if _, again := gone[string(ids[i])]; again {
			rec = Record{}
		}
		deleted, err := w.expire(rule, rec, all)
		if err != nil {
			return err
		}
		if deleted {
			gone[string(ids[i])] = struct{}{}
		}
		if !examined(rec, deleted) {
			return nil
		}
	}
	return nil
}

func (w *Writer) expire(rule *policy.Rule, rec Record, all bool) (deleted bool, err error) {
	if rec.Doc == nil {
		return false, nil
	}
	deadline, _ := rule.Deadline(rec.Doc, rec.Modified)
	if deadline > w.view.now || !all && !w.mayDelete(rule, deadline) {
		return false, nil
	}
	if w.IsSpared(rec.ID) {
		return false, nil
	}
	w.expired++
	return true, w.remove(meaning.DocumentExpired, rec)
}

// IsSpared says whether a transaction of several statements has the record, which one who deletes what has expired, or puts records in order,
// leaves alone: he is told when that is over (Options.OnReleased), and writes with WriteOptions.PassesOver.
func (w *Writer) IsSpared(id RecordID) bool {
	return w.txn.statements == nil && w.txn.store.intents.Spare(layout.RecordKey(w.key[:0], w.c.ID, id), w.c.ID)
}

// DeleteDue is ExpireMany of all of the records, and also of what that leaves alone for now; deleted is how many there were.
func (w *Writer) DeleteDue(rule *policy.Rule, ids []RecordID) (deleted int64, err error) {
	err = w.expireMany(rule, ids, true, func(_ Record, gone bool) bool {
		if gone {
			deleted++
		}
		return true
	})
	return deleted, err
}

// DeleteHidden deletes a record that is hidden, because it is in somebody's way.
func (w *Writer) DeleteHidden(rec Record) error { return w.remove(meaning.DocumentExpired, rec) }
