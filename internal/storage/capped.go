package storage

import (
	"fmt"

	"github.com/ebbdb/ebb/internal/storage/meaning"
)

const (
	// trimBatch is how many documents are read at once to make room for one that is inserted: as a rule one does.
	trimBatch = 16
	// trimStep is how many documents one call of Trim deletes at most.
	trimStep = 1000
)

// trimCapped deletes the oldest documents of a capped collection until it is within its bounds.
func (w *Writer) trimCapped() (err error) {
	for more := w.c.Options.Capped; more && err == nil; {
		more, err = w.trim(trimBatch)
	}
	return err
}

// Trim deletes the oldest documents of a capped collection that has grown over its bounds, or whose bounds have become
// tighter. more says that it has to be called again.
func (w *Writer) Trim() (more bool, err error) {
	if !w.c.Options.Capped {
		return false, nil
	}
	return w.trim(trimStep)
}

// trim deletes at most n documents, and leaves one.
func (w *Writer) trim(n int) (more bool, err error) {
	o := &w.c.Options
	documents, bytes, err := w.storedCounts()
	if err != nil || !over(documents, o.Max) && !over(bytes, o.Size) {
		return false, err
	}
	oldest, err := w.oldest(n)
	if err != nil {
		return false, err
	}
	for _, rec := range oldest {
		if documents <= 1 || !over(documents, o.Max) && !over(bytes, o.Size) {
			return false, nil
		}
		if err := w.remove(meaning.DocumentDeleted, rec); err != nil {
			return false, err
		}
		w.change.Trimmed = rec.ID
		documents--
		bytes -= int64(len(rec.Doc))
	}
	if len(oldest) == 0 {
		return false, fmt.Errorf("storage: %s counts %d documents and has none", w.c.NS, documents)
	}
	return true, nil
}

func over(n, bound int64) bool { return bound > 0 && n > bound }

// oldest are the first n records, hidden or not.
func (w *Writer) oldest(n int) ([]Record, error) {
	after := w.c.state.trimmed
	if w.change.Trimmed != nil {
		after = w.change.Trimmed
	}
	cursor, err := w.Unhidden().Scan(RecordScan{After: after})
	if err != nil {
		return nil, err
	}
	defer cursor.Close()
	var out []Record
	for len(out) < n && cursor.Next() {
		out = append(out, cursor.Record().Clone())
	}
	return out, cursor.Err()
}
