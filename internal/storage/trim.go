package storage

import "github.com/ebbdb/ebb/internal/storage/meaning"

// trimStep is how many documents one call of Trim deletes at most.
const trimStep = 1000

// Trim deletes the oldest documents of a capped collection that has grown over its bounds, or whose bounds have become
// tighter. more says that it has to be called again.
func (w *Writer) Trim() (more bool, err error) {
	o := &w.c.Options
	if !o.Capped {
		return false, nil
	}
	documents, bytes, err := w.storedCounts()
	if err != nil || !over(documents, o.Max) && !over(bytes, o.Size) {
		return false, err
	}
	oldest, err := w.oldest(trimStep)
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
		documents--
		bytes -= int64(len(rec.Doc))
	}
	return true, nil
}
