package build

import (
	"bytes"
	"context"
	"errors"

	"github.com/ebbdb/ebb/internal/index"
	"github.com/ebbdb/ebb/internal/kv"
	"github.com/ebbdb/ebb/internal/storage/layout"
	"github.com/ebbdb/ebb/internal/storage/walk"
)

// maxApplied is how many rows one transaction of catching up applies at most.
const maxApplied = 4000

// CatchUp applies the rows of a closed generation of the side table, in one transaction after the other. around runs each, and
// applied is told how many rows it had.
func (t *Table) CatchUp(ctx context.Context, engine kv.Engine, generation byte, around func(func() error) error, applied func(int)) error {
	for after, more := []byte(nil), true; more; more = after != nil {
		n := 0
		err := around(func() (err error) {
			n, after, err = t.applySome(ctx, engine, generation, after)
			return err
		})
		if err != nil {
			return err
		}
		applied(n)
	}
	return nil
}

// applySome applies rows from behind the key after on; next is nil when there are no more.
func (t *Table) applySome(ctx context.Context, engine kv.Engine, generation byte, after []byte) (n int, next []byte, err error) {
	txn, err := engine.Begin()
	if err != nil {
		return 0, nil, err
	}
	rows, next, err := t.readSide(txn, layout.SideKey(nil, t.Side, generation), after)
	if err == nil {
		err = t.apply(txn, rows)
	}
	if err != nil {
		txn.Rollback()
		return 0, nil, err
	}
	return len(rows), next, txn.Commit(ctx, kv.Buffered)
}

// EachSkipped calls f with each record that the side table says somebody could not compute the keys of.
func (t *Table) EachSkipped(ctx context.Context, r kv.Reader, f func(layout.RecordID) error) error {
	if t.Side == 0 {
		return nil
	}
	var w walk.Keys
	if err := w.OpenRange(ctx, r, layout.SideKey(nil, t.Side, layout.SkippedGeneration)); err != nil {
		return err
	}
	var err error
	for err == nil && w.Next() {
		err = f(layout.RecordID(w.Key()[layout.SideKeyLength:]).Clone())
	}
	return errors.Join(err, w.Err(), w.Close())
}

// readSide reads up to maxApplied rows; next is where to go on, nil at the end.
func (t *Table) readSide(r kv.Reader, start, after []byte) (rows []layout.SideRow, next []byte, err error) {
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
func (t *Table) apply(txn kv.Txn, rows []layout.SideRow) error {
	places, of, err := t.places(txn, rows)
	if err != nil {
		return err
	}
	for i, row := range rows {
		p := &places[of[i]]
		if t.HoldsIDs() {
			if err := t.applyHolder(p, row); err != nil {
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
			t.Count++
		} else {
			txn.Delete(p.key)
		}
	}
	return nil
}

// places reads the entries that rows, which are in order, are about; of[i] is the place of the i-th row. Entries that are
// there do not count any more.
func (t *Table) places(txn kv.Txn, rows []layout.SideRow) (places []place, of []int, err error) {
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
			t.Count--
		}
	}
	return places, of, nil
}

// applyHolder makes a row's change of a unique index, whose table has room for one record a key; the others wait in
// t.waiting.
func (t *Table) applyHolder(p *place, row layout.SideRow) error {
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
		return t.wait(row.KeyString, row.ID, row.TypeBits)
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
func (t *Table) succeed(p *place, keyString []byte) {
	next, ok := t.firstWaiting(keyString)
	if p.there = ok; ok {
		t.unwait(keyString, next.id)
		p.value = t.entryValue(nil, next.id, next.typeBits)
	}
}

// entryValue appends the value of an entry in the index itself.
func (t *Table) entryValue(dst []byte, id layout.RecordID, typeBits []byte) []byte {
	if t.Kind == index.Deadline {
		return dst
	}
	return t.EntryValue(dst, id, typeBits)
}
