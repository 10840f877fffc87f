package storage

import (
	"fmt"

	"github.com/ebbdb/ebb/internal/kv"
	"github.com/ebbdb/ebb/internal/storage/layout"
)

// Ahead has records that will be asked for soon.
type Ahead struct {
	txn     kv.Txn // in which they were read, if in one
	records []Record
	n, next int
	keys    [][]byte
	values  [][]byte
	buf     []byte

	room struct { // for all of these, where they are few
		records      [MaxAhead]Record
		keys, values [MaxAhead][]byte
	}
}

// MaxAhead is how many records are looked up ahead at once, where looks cost little.
const MaxAhead = 16

// MostAhead is how many records can be looked up ahead at once.
func (r *Reader) MostAhead() int { return max(MaxAhead, r.view.store.can.Ahead) }

// LookAhead makes a have of the records with ids, MostAhead at most, what is in memory or costs as much one by one as together; the last are left
// out where the engine does not look for so much at once (kv.Reader.Ahead). They will be asked for in that order.
func (r *Reader) LookAhead(a *Ahead, ids []RecordID) error {
	a.n, a.next, a.buf, a.txn = len(ids), 0, a.buf[:0], nil
	switch {
	case len(ids) > len(a.records) && len(ids) > MaxAhead:
		a.records, a.keys, a.values = make([]Record, r.MostAhead()), make([][]byte, r.MostAhead()), make([][]byte, r.MostAhead())
	case len(ids) > len(a.records):
		a.records, a.keys, a.values = a.room.records[:], a.room.keys[:], a.room.values[:]
	}
	if t := r.view.txn; t != nil {
		a.txn = t.kv
	}
	for i, id := range ids {
		start := len(a.buf)
		a.buf = layout.RecordKey(a.buf, r.c.ID, id)
		a.keys[i], a.values[i] = a.buf[start:len(a.buf):len(a.buf)], nil
	}
	looked, err := r.view.reader.Ahead(a.keys[:a.n], a.values[:a.n])
	if a.n = looked; err != nil {
		return fmt.Errorf("storage: get records of %s: %w", r.c.NS, err)
	}
	for i, value := range a.values[:a.n] {
		id := RecordID(a.keys[i][layout.TableLength:]) // bytes of its own
		a.records[i] = Record{ID: id}
		if value == nil {
			continue
		}
		if err := a.records[i].Read(id, value); err != nil {
			return err
		}
	}
	return nil
}

// Take is the record with the id, if a has it, and the transaction that reads has not written it meanwhile; what stands before it is not asked for any
// more. Whether r hides it has not been looked at.
func (a *Ahead) Take(id RecordID) *Record {
	for a.next < a.n {
		rec := &a.records[a.next]
		a.next++
		if string(rec.ID) == string(id) {
			if rec.Doc == nil || a.txn != nil && a.txn.Wrote(a.keys[a.next-1]) {
				return nil
			}
			return rec
		}
	}
	return nil
}

// IsEmpty says whether a has nothing any more.
func (a *Ahead) IsEmpty() bool { return a.next == a.n }
