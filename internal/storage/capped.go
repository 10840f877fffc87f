package storage

import (
	"fmt"

	"github.com/ebbdb/ebb/internal/storage/meaning"
)

// trimCapped deletes the oldest documents of a capped collection until it is within its bounds.
func (w *Writer) trimCapped() error {
	o := &w.c.Options
	if !o.Capped {
		return nil
	}
	documents, bytes, err := w.storedCounts()
	if err != nil {
		return err
	}
	for over(documents, o.Max) || over(bytes, o.Size) {
		oldest, err := w.oldest(trimBatch)
		if err != nil {
			return err
		}
		for _, rec := range oldest {
			if documents <= 1 || !over(documents, o.Max) && !over(bytes, o.Size) {
				return nil
			}
			if err := w.remove(meaning.DocumentDeleted, rec); err != nil {
				return err
			}
			w.change.Trimmed = rec.ID
			documents--
			bytes -= int64(len(rec.Doc))
		}
		if len(oldest) == 0 {
			return fmt.Errorf("storage: %s counts %d documents and has none", w.c.NS, documents)
		}
	}
	return nil
}

// trimBatch is how many documents are read at once to be deleted: as a rule one makes room for one.
const trimBatch = 16

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
