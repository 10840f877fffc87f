package storage

import (
	"fmt"

	"github.com/ebbdb/ebb/internal/kv"
	"github.com/ebbdb/ebb/internal/storage/layout"
)

// Ahead has records that will be asked for soon.
type Ahead struct {
	txn     kv.Txn // in which they were read, if in one
	records [MaxAhead]Record
	n, next int
	keys    [MaxAhead][]byte
	values  [MaxAhead][]byte
	buf     []byte
}

// MaxAhead is how many records can be looked up ahead at once.
const MaxAhead = 16

// LookAhead makes a have of the records with ids, MaxAhead at most, what is in memory or costs as much one by one as together. They will be asked for in
// that order.
func (r *Reader) LookAhead(a *Ahead, ids []RecordID) error {
	a.n, a.next, a.buf, a.txn = len(ids), 0, a.buf[:0], nil
	if t := r.view.txn; t != nil {
		a.txn = t.kv
	}
	for i, id := range ids {
		start := len(a.buf)
		a.buf = layout.RecordKey(a.buf, r.c.ID, id)
		a.keys[i], a.values[i] = a.buf[start:len(a.buf):len(a.buf)], nil
	}
	if err := r.view.reader.Ahead(a.keys[:a.n], a.values[:a.n]); err != nil {
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
