package storage

import (
	"bytes"

	"github.com/ebbdb/ebb/internal/catalog"
	"github.com/ebbdb/ebb/internal/index"
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

// maxApplied is how many rows one transaction of catching up applies at most.
const maxApplied = 4000

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
	rows, next, err := t.readSide(txn, layout.SideKey(nil, t.side, generation), after)
	if err == nil {
		err = t.apply(txn, b.collection.Collection, rows)
	}
	if err != nil {
		txn.Rollback()
		return 0, nil, err
	}
	return len(rows), next, txn.Commit(b.ctx, kv.Buffered)
}

// readSide reads up to maxApplied rows; next is where to go on, nil at the end.
func (t *buildTable) readSide(r kv.Reader, start, after []byte) (rows []layout.SideRow, next []byte, err error) {
	bounds := kv.IterOptions{Lower: start, Upper: layout.After(start)}
	if after != nil {
		bounds.Lower = append(after, 0)
	}
	it, err := r.NewIter(bounds)
	if err != nil {
		return nil, nil, err
	}
	defer it.Close()
	for len(rows) < maxApplied && it.Next() {
		value, err := it.Value()
		if err != nil {
			return nil, nil, err
		}
		row, err := t.ReadSideRow(append([]byte(nil), it.Key()...), append([]byte(nil), value...))
		if err != nil {
			return nil, nil, err
		}
		rows, next = append(rows, row), append(next[:0], it.Key()...)
	}
	if len(rows) < maxApplied {
		next = nil
	}
	return rows, next, it.Err()
}

// place is an entry of the table that rows are about: its key, and its value as the rows leave it, nil when there is none.
type place struct {
	key, value []byte
	there      bool
}

// apply makes the rows' changes of the table. A row may say what the table already has: the bulk pass saw later states of
// some records than the side table's beginning.
func (t *buildTable) apply(txn kv.Txn, c *catalog.Collection, rows []layout.SideRow) error {
	places, of, err := t.places(txn, rows)
	if err != nil {
		return err
	}
	for i, row := range rows {
		p := &places[of[i]]
		if layout.HoldsIDs(t.Definition) {
			if err := t.applyHolder(p, c, row); err != nil {
				return err
			}
			continue
		}
		if p.there = row.Put; row.Put {
			p.value = t.entryValue(nil, row.ID, row.TypeBits)
		}
	}
	for i := range places {
		if p := &places[i]; p.there {
			txn.Set(p.key, p.value)
			t.count++
		} else {
			txn.Delete(p.key)
		}
	}
	return nil
}

// places reads the entries that rows, which are in order, are about; of[i] is the place of the i-th row. Entries that are
// there do not count any more.
func (t *buildTable) places(txn kv.Txn, rows []layout.SideRow) (places []place, of []int, err error) {
	var keys [][]byte
	for _, row := range rows {
		key := t.EntryKey(nil, row.KeyString, row.ID)
		if n := len(keys); n == 0 || !bytes.Equal(keys[n-1], key) {
			keys = append(keys, key)
		}
		of = append(of, len(keys)-1)
	}
	values, err := txn.GetMany(keys)
	if err != nil {
		return nil, nil, err
	}
	places = make([]place, len(keys))
	for i, value := range values {
		places[i] = place{keys[i], value, value != nil}
		if value != nil {
			t.count--
		}
	}
	return places, of, nil
}

// applyHolder makes a row's change of a unique index, whose table has room for one record a key; the others wait in
// t.waiting.
func (t *buildTable) applyHolder(p *place, c *catalog.Collection, row layout.SideRow) error {
	own := false
	if p.there {
		holder, _, err := layout.SplitID(p.value)
		if err != nil {
			return err
		}
		own = holder.IsSame(row.ID)
	}
	switch {
	case row.Put && p.there && !own:
		return t.wait(c, row.KeyString, row.ID, row.TypeBits)
	case row.Put:
		p.there, p.value = true, t.entryValue(nil, row.ID, row.TypeBits)
	case own:
		t.succeed(p, row.KeyString)
	default:
		t.unwait(row.KeyString, row.ID)
	}
	return nil
}

// succeed puts one of those that wait for a key in the place of its holder, which has gone.
func (t *buildTable) succeed(p *place, keyString []byte) {
	next, ok := t.firstWaiting(keyString)
	if p.there = ok; ok {
		t.unwait(keyString, next.id)
		p.value = t.entryValue(nil, next.id, next.typeBits)
	}
}

// entryValue appends the value of an entry in the index itself.
func (t *buildTable) entryValue(dst []byte, id RecordID, typeBits []byte) []byte {
	if t.Kind == index.Deadline {
		return dst
	}
	return t.EntryValue(dst, id, typeBits)
}
