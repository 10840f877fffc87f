package storage

import "github.com/ebbdb/ebb/internal/storage/layout"

// maxGenerations bounds the rounds of catching up.
const maxGenerations = 64

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

// catchUp brings the rows of a generation, which is closed, into the tables; n is how many there were. around runs each
// transaction.
func (b *Build) catchUp(generation byte, around func(func() error) error) (n int, err error) {
	for _, t := range b.tables {
		err := t.CatchUp(b.ctx, b.store.engine, generation, func(apply func() error) error {
			return around(func() error {
				if err := b.alive(); err != nil {
					return err
				}
				return apply()
			})
		}, func(applied int) { n += applied; b.progress.Add(int64(applied)) })
		if err != nil {
			return 0, err
		}
	}
	return n, nil
}

// directly is an around that adds nothing.
func directly(f func() error) error { return f() }
