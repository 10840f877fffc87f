package storage

import "github.com/ebbdb/ebb/internal/storage/layout"

// noteAside writes a row for an entry of an index that is being built.
func (w *Writer) noteAside(t *writtenTable, operation byte, keyString []byte, id RecordID, typeBits []byte) {
	w.key = t.SideRowKey(w.key[:0], t.side, t.generation, keyString, id)
	w.value = layout.SideRowValue(w.value[:0], operation, id, typeBits)
	w.txn.kv.Set(w.key, w.value)
}

// noteSkipped remembers a record whose keys cannot be computed.
func (w *Writer) noteSkipped(t *writtenTable, id RecordID) {
	w.key = append(layout.SideKey(w.key[:0], t.side, layout.SkippedGeneration), id...)
	w.txn.kv.Set(w.key, nil)
}
