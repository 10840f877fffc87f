// Package build makes the entries of new indexes: it reads all records and sorts their entries, loads them in order, applies what writers have
// noted in side tables meanwhile, and decides what was left open (Work). It does not know who writes, nor when an index is ready.
package build

import (
	"github.com/ebbdb/ebb/internal/bson"
	"github.com/ebbdb/ebb/internal/catalog"
	"github.com/ebbdb/ebb/internal/index"
	"github.com/ebbdb/ebb/internal/memory"
	"github.com/ebbdb/ebb/internal/storage/expiryorder"
	"github.com/ebbdb/ebb/internal/storage/layout"
)

// Table is one index on its way. It is used by one goroutine at a time.
//
// In a unique index a key that somebody waits for is in the index too, with another record.
type Table struct {
	layout.Entries
	Collection *catalog.Collection // which the index belongs to
	// Side is the number of the side table, 0 for none.
	Side uint32
	// Count is the number of entries in the index, after every commit of the builder.
	Count int64
	// Arrays is told of keys that go through arrays.
	Arrays func(*index.Keys)
	// Ask may end what takes long; it is asked where a document may have many keys.
	Ask func() error

	sorter  *sorter
	keys    index.Keys
	key     []byte
	value   []byte
	waiting waiting
}

// Options of a Table.
type Options struct {
	// TempDir is where is sorted what is more than MemoryBytes, taken from Memory.
	TempDir     string
	MemoryBytes int
	Memory      *memory.Governor
	// Ask and Arrays are the Table's.
	Ask    func() error
	Arrays func(*index.Keys)
}

// NewTable is one without entries. Close it.
func NewTable(e layout.Entries, c *catalog.Collection, o Options) *Table {
	t := &Table{Entries: e, Collection: c, Arrays: o.Arrays, Ask: o.Ask, sorter: newSorter(o.TempDir, o.MemoryBytes)}
	if t.CoversShapes() {
		t.keys.Ask = func() error { return t.Ask() }
	}
	t.sorter.memory.Open(o.Memory, memory.IndexBuilds)
	return t
}

// Close gives back what the table holds beside its entries.
func (t *Table) Close() { t.sorter.close() }

// Compute computes a document's keys, and fails where it cannot have any.
func (t *Table) Compute(doc bson.Doc) error { return t.Keys(doc, &t.keys) }

// Enter adds the entries of a record, which lies in an order or none.
func (t *Table) Enter(order *expiryorder.Order, rec layout.Record) error {
	if t.Kind == index.Deadline {
		return t.enterDeadline(order, rec)
	}
	if err := t.Compute(rec.Doc); err != nil {
		return err
	}
	if t.keys.IsMultikey() {
		t.Arrays(&t.keys)
	}
	for i := range t.keys.Len() {
		if err := t.sort(t.keys.Key(i), rec.ID, t.keys.TypeBits(i)); err != nil {
			return err
		}
	}
	return nil
}

// sort hands the sorter what orders the entry, and what its value will be.
func (t *Table) sort(keyString []byte, id layout.RecordID, typeBits []byte) error {
	if t.HoldsIDs() {
		return t.sorter.add(keyString, id, typeBits)
	}
	t.value = t.Tail(append(t.value[:0], typeBits...), id)
	return t.sorter.add(keyString, t.Suffix(id), t.value)
}

func (t *Table) enterDeadline(order *expiryorder.Order, rec layout.Record) error {
	key := order.AppendDeadline(t.key[:0], t.Definition, rec)
	if key == nil {
		return nil
	}
	t.key = key
	return t.sorter.add(key[layout.TableLength:len(key)-len(rec.ID)], rec.ID, nil)
}

// Finish ends entering.
func (t *Table) Finish() error { return t.sorter.finish() }

// Added is how many entries were entered.
func (t *Table) Added() int64 { return t.sorter.added }

// Shared calls f with each record that has the key of a unique index that another one has, once for each key, until more is false;
// begins says that it is the first of a key's. All entries must have been entered, and none taken.
func (t *Table) Shared(f func(id layout.RecordID, begins bool) (more bool, err error)) error {
	var last, lastID []byte
	begun, shared := false, false
	for {
		e, ok, err := t.sorter.next()
		if err != nil || !ok {
			return err
		}
		switch {
		case !begun || string(e.key) != string(last):
			shared = false
		case layout.RecordID(e.id).IsSame(lastID):
			continue
		default:
			more := true
			if !shared {
				more, err = f(lastID, true)
			}
			shared = true
			if more && err == nil {
				more, err = f(e.id, false)
			}
			if !more || err != nil {
				return err
			}
		}
		last, lastID, begun = append(last[:0], e.key...), append(lastID[:0], e.id...), true
	}
}

// Source gives the entries in order, each key of a unique index once: the records behind the first wait. It calls step for each
// that it takes up.
func (t *Table) Source(step func() error) func() (key, value []byte, ok bool, err error) {
	var last, lastID []byte
	begun := false
	return func() ([]byte, []byte, bool, error) {
		for {
			e, ok, err := t.sorter.next()
			if err != nil || !ok {
				return nil, nil, false, err
			}
			if err := step(); err != nil {
				return nil, nil, false, err
			}
			same := begun && string(e.key) == string(last)
			if same && layout.RecordID(e.id).IsSame(lastID) {
				continue // the record has moved while the records were read; how it is now is in the side table
			}
			if same && t.HoldsIDs() {
				if err := t.wait(e.key, e.id, e.typeBits); err != nil {
					return nil, nil, false, err
				}
				continue
			}
			last, lastID, begun = append(last[:0], e.key...), append(lastID[:0], e.id...), true
			t.Count++
			t.key = t.EntryKey(t.key[:0], e.key, e.id)
			t.value = t.entryValue(t.value[:0], e.id, e.typeBits)
			return t.key, t.value, true, nil
		}
	}
}
