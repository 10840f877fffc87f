package storage

import (
	"github.com/ebbdb/ebb/internal/kv"
	"github.com/ebbdb/ebb/internal/storage/layout"
)

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
		for after, more := []byte(nil), true; more; more = after != nil {
			var applied int
			err := around(func() (err error) {
				applied, after, err = b.applySome(t, generation, after)
				return err
			})
			if err != nil {
				return 0, err
			}
			n += applied
			b.progress.done.Add(int64(applied))
		}
	}
	return n, nil
}

// directly is an around that adds nothing.
func directly(f func() error) error { return f() }

// applySome applies rows from behind the key after on, in one transaction; next is nil when there are no more.
func (b *Build) applySome(t *buildTable, generation byte, after []byte) (n int, next []byte, err error) {
	if err := b.alive(); err != nil {
		return 0, nil, err
	}
	txn, err := b.store.engine.Begin()
	if err != nil {
		return 0, nil, err
	}
	if n, next, err = t.ApplySome(txn, generation, after); err != nil {
		txn.Rollback()
		return 0, nil, err
	}
	return n, next, txn.Commit(b.ctx, kv.Buffered)
}
