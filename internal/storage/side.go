package storage

import (
	"bytes"
	"encoding/binary"
	"errors"

	"github.com/ebbdb/ebb/internal/catalog"
	"github.com/ebbdb/ebb/internal/index"
	"github.com/ebbdb/ebb/internal/kv"
)

// A side table is where writers note what happens to the entries of an index while that is built. It has an index number
// of its own, under which nothing but these rows is ever stored:
//
//	'x' | side | generation | keyString | suffix → operation, length of the record id, record id, typeBits
//	'x' | side | 0xFF | recordId                   → nothing: that record has no keys; the build fails if it stays so
//
// The suffix is what of the record id is in the entry's key, so that there is one row for each entry that was touched in a
// generation, also where a record moved: the last operation stands.

// The operations of a row.
const (
	sideDelete = 0
	sidePut    = 1
)

// skippedGeneration is no generation.
const skippedGeneration = 0xFF

// maxGenerations bounds the rounds of catching up.
const maxGenerations = 64

func sideKey(dst []byte, side uint32, generation byte) []byte {
	return append(numbered(dst, indexPrefix, side), generation)
}

const sideKeyLength = tableLength + 1

// sideRow is a row that was read.
type sideRow struct {
	put       bool
	keyString []byte
	id        RecordID
	typeBits  []byte
}

var errBrokenSideRow = errors.New("storage: a row of a side table is broken")

func (e entries) readSideRow(key, value []byte) (sideRow, error) {
	if len(key) < sideKeyLength || len(value) == 0 {
		return sideRow{}, errBrokenSideRow
	}
	id, typeBits, err := splitID(value[1:])
	if err != nil {
		return sideRow{}, errBrokenSideRow
	}
	key = key[sideKeyLength:]
	end := len(key) - len(e.suffix(id))
	if end < 0 {
		return sideRow{}, errBrokenSideRow
	}
	return sideRow{value[0] == sidePut, key[:end], id, typeBits}, nil
}

// noteAside writes a row for an entry of an index that is being built.
func (w *Writer) noteAside(t *writtenTable, operation byte, keyString []byte, id RecordID, typeBits []byte) {
	w.key = append(append(sideKey(w.key[:0], t.side, t.generation), keyString...), t.suffix(id)...)
	w.value = binary.AppendUvarint(append(w.value[:0], operation), uint64(len(id)))
	w.value = append(append(w.value, id...), typeBits...)
	w.txn.kv.Set(w.key, w.value)
}

// noteSkipped remembers a record whose keys cannot be computed.
func (w *Writer) noteSkipped(t *writtenTable, id RecordID) {
	w.key = append(sideKey(w.key[:0], t.side, skippedGeneration), id...)
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
	rows, next, err := t.readSide(txn, sideKey(nil, t.side, generation), after)
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
func (e entries) readSide(r kv.Reader, start, after []byte) (rows []sideRow, next []byte, err error) {
	bounds := kv.IterOptions{Lower: start, Upper: After(start)}
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
		row, err := e.readSideRow(append([]byte(nil), it.Key()...), append([]byte(nil), value...))
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
func (t *buildTable) apply(txn kv.Txn, c *catalog.Collection, rows []sideRow) error {
	places, of, err := t.places(txn, rows)
	if err != nil {
		return err
	}
	for i, row := range rows {
		p := &places[of[i]]
		if holdsIDs(t.Definition) {
			if err := t.applyHolder(p, c, row); err != nil {
				return err
			}
			continue
		}
		if p.there = row.put; row.put {
			p.value = t.entryValue(nil, row.id, row.typeBits)
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
func (t *buildTable) places(txn kv.Txn, rows []sideRow) (places []place, of []int, err error) {
	var keys [][]byte
	for _, row := range rows {
		key := t.appendKey(nil, row.keyString, row.id)
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
func (t *buildTable) applyHolder(p *place, c *catalog.Collection, row sideRow) error {
	own := false
	if p.there {
		holder, _, err := splitID(p.value)
		if err != nil {
			return err
		}
		own = holder.isSame(row.id)
	}
	switch {
	case row.put && p.there && !own:
		return t.wait(c, row.keyString, row.id, row.typeBits)
	case row.put:
		p.there, p.value = true, t.entryValue(nil, row.id, row.typeBits)
	case own:
		t.succeed(p, row.keyString)
	default:
		t.unwait(row.keyString, row.id)
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
	return t.appendValue(dst, id, typeBits)
}
