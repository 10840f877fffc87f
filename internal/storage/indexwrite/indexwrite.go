// Package indexwrite writes the entries of a collection's indexes as its documents change: it computes the keys that a document has and had,
// writes and deletes the entries that differ, notes what goes to indexes that are being built, and counts. It does not know which documents
// may be changed, nor whether a key is free.
package indexwrite

import (
	"bytes"
	"context"
	"fmt"
	"slices"

	"github.com/ebbdb/ebb/internal/bson"
	"github.com/ebbdb/ebb/internal/catalog"
	"github.com/ebbdb/ebb/internal/index"
	"github.com/ebbdb/ebb/internal/kv"
	"github.com/ebbdb/ebb/internal/storage/expiryorder"
	"github.com/ebbdb/ebb/internal/storage/layout"
	"github.com/ebbdb/ebb/internal/storage/meaning"
	"github.com/ebbdb/ebb/internal/storage/multikey"
)

// Index is an index that keeps entries.
type Index struct {
	layout.Entries
	Multikey *multikey.Index
	// Roots are the first components of the key's paths; nil when any change of a document may change its keys.
	Roots []string
}

// Building is an index that is being built: its changes go to its side table, under the build's generation.
type Building struct {
	*Index
	Side       uint32
	Generation byte
}

// KeyCount is how many keys of documents, as they are and were, were put into indexes and taken out.
type KeyCount struct{ Inserted, Deleted int64 }

// Writer writes the entries of one collection in a transaction. First the keys of a change are computed (Insert, Change, Remove), which may
// fail and leaves nothing behind; Move writes them. Use Begin.
type Writer struct {
	// Context, unless nil, may end the making of keys that may take long.
	Context context.Context
	// Keys are those that came and went.
	Keys KeyCount

	// Value is memory for a value that the transaction is given next; others may use it between calls.
	Value []byte

	txn     kv.Txn
	of      *catalog.Collection
	order   *expiryorder.Order // or nil
	tables  []Table
	implied int64 // entries that record ids stand for, added
	room    [1]Table
	key     *[]byte // as Value, for a key
}

// Table is what a Writer keeps for one index.
type Table struct {
	*Index
	fresh, stale index.KeySet   // keys of the document as it will be and as it was
	touched      bool           // whether fresh and stale may differ
	surplus      int64          // entries added beyond one a document
	bits         []uint64       // multikey bits that this transaction stores
	paths        *index.PathSet // and the paths of a wildcard

	// Of an index that is being built: its changes go to its side table, under the build's generation. skipped says that
	// the document's keys cannot be computed, which is the build's worry and not the writer's.
	side       uint32
	generation byte
	skipped    bool
}

func (t *Table) building() bool { return t.side != 0 }

// Begin has a new Writer write to the indexes of a collection. key is memory for keys, which others may use between calls.
func (w *Writer) Begin(txn kv.Txn, of *catalog.Collection, order *expiryorder.Order, indexes []*Index, key *[]byte) {
	w.txn, w.of, w.order, w.key = txn, of, order, key
	if w.tables = w.room[:]; len(indexes) > len(w.room) {
		w.tables = make([]Table, len(indexes))
	}
	w.tables = w.tables[:len(indexes)]
	for i, ix := range indexes {
		w.tables[i].Index = ix
	}
}

// Build has it note what happens to an index that is being built.
func (w *Writer) Build(b Building) {
	w.tables = append(w.tables, Table{Index: b.Index, side: b.Side, generation: b.Generation})
}

// Redefine has it go on with other indexes of an empty collection.
func (w *Writer) Redefine(order *expiryorder.Order, indexes []*Index, key *[]byte) {
	tables := make([]Table, len(indexes))
	for i, ix := range indexes {
		for _, was := range w.tables {
			if was.ID == ix.ID {
				tables[i] = was
			}
		}
		tables[i].Index = ix
	}
	w.order, w.tables, w.key = order, tables, key
}

// Insert computes the keys of a new document.
func (w *Writer) Insert(doc bson.Doc) error {
	for i := range w.tables {
		t := &w.tables[i]
		t.touched, t.stale.None = true, true
		if err := w.freshKeysOf(t, doc); err != nil {
			return err
		}
	}
	return nil
}

func (w *Writer) freshKeysOf(t *Table, doc bson.Doc) error {
	t.fresh.Ask = w.ask(t)
	err := t.Keys(doc, &t.fresh.Keys)
	if err != nil && t.fresh.Ask != nil && w.Context.Err() != nil {
		return err
	}
	t.skipped = err != nil && t.building()
	t.fresh.None = t.skipped
	if t.skipped {
		return nil
	}
	return err
}

// ask is what may end the making of t's keys, where that may take long.
func (w *Writer) ask(t *Table) func() error {
	if w.Context == nil || !t.CoversShapes() {
		return nil
	}
	return func() error { return context.Cause(w.Context) }
}

func (w *Writer) staleKeys(t *Table, doc bson.Doc) error {
	t.stale.Ask = w.ask(t)
	err := t.Keys(doc, &t.stale.Keys)
	if err != nil && t.stale.Ask != nil && w.Context.Err() != nil {
		return err
	}
	t.stale.None = err != nil
	if err != nil && !t.building() {
		return fmt.Errorf("storage: a stored document of %s has no keys in %q: %w", w.of.NS, t.Name, err)
	}
	return nil
}

// Change computes the keys that an updated document has and had, in the indexes where they may differ: in all when
// its record has moved.
func (w *Writer) Change(old, doc bson.Doc, moved bool) error {
	for i := range w.tables {
		t := &w.tables[i]
		if t.touched = moved || index.MayDiffer(t.Roots, old, doc); !t.touched {
			continue
		}
		if err := w.freshKeysOf(t, doc); err != nil {
			return err
		}
		if err := w.staleKeys(t, old); err != nil {
			return err
		}
	}
	return nil
}

// Remove computes the keys of a document that goes.
func (w *Writer) Remove(doc bson.Doc) error {
	for i := range w.tables {
		t := &w.tables[i]
		t.touched, t.fresh.None, t.skipped = true, true, false
		if err := w.staleKeys(t, doc); err != nil {
			return err
		}
	}
	return nil
}

// EachTaken calls f for each key that the document is about to have anew in an index that is unique, or is becoming so, until f fails.
func (w *Writer) EachTaken(f func(t *Table, keyString, typeBits []byte) error) error {
	for i := range w.tables {
		t := &w.tables[i]
		if !t.touched || t.building() || !layout.HoldsIDs(t.Definition) && !t.PrepareUnique {
			continue
		}
		for j := range t.fresh.Count() {
			if t.stale.Has(t.fresh.Key(j)) {
				continue
			}
			if err := f(t, t.fresh.Key(j), t.fresh.TypeBits(j)); err != nil {
				return err
			}
		}
	}
	return nil
}

// Move changes the entries from those of old to those of rec, whose keys are computed; either may be no record.
func (w *Writer) Move(old, rec layout.Record) {
	for i := range w.tables {
		w.moveEntries(&w.tables[i], old, rec)
	}
}

// moveEntries changes an index's entries from those of old to those of rec; either may be no record.
func (w *Writer) moveEntries(t *Table, old, rec layout.Record) {
	if t.Kind == index.Deadline {
		w.moveDeadline(t, old, rec)
		return
	}
	if !t.touched {
		return
	}
	moved := !bytes.Equal(old.ID, rec.ID)
	i, j := 0, 0
	for i < t.stale.Count() || j < t.fresh.Count() {
		switch order := index.CompareKeys(&t.stale, i, &t.fresh, j); {
		case order < 0:
			w.deleteEntry(t, t.stale.Key(i), old.ID)
			w.Keys.Deleted++
			i++
		case order > 0:
			w.putEntry(t, j, rec.ID)
			w.Keys.Inserted++
			j++
		default:
			if moved {
				w.deleteEntry(t, t.stale.Key(i), old.ID)
			}
			if moved || !bytes.Equal(t.stale.TypeBits(i), t.fresh.TypeBits(j)) {
				w.putEntry(t, j, rec.ID)
			}
			i, j = i+1, j+1
		}
	}
	t.surplus += int64(t.fresh.Count() - t.stale.Count())
	if t.skipped && rec.ID != nil {
		w.noteSkipped(t, rec.ID)
	}
	if rec.ID != nil {
		t.surplus--
		w.setMultikey(t)
	}
	if old.ID != nil {
		t.surplus++
	}
}

func (w *Writer) putEntry(t *Table, i int, id layout.RecordID) {
	if t.building() {
		w.noteAside(t, layout.SidePut, t.fresh.Key(i), id, t.fresh.TypeBits(i))
		return
	}
	*w.key = t.EntryKey((*w.key)[:0], t.fresh.Key(i), id)
	w.Value = t.EntryValue(w.Value[:0], id, t.fresh.TypeBits(i))
	if layout.HoldsIDs(t.Definition) {
		w.txn.SetCached(*w.key, w.Value)
		return
	}
	w.txn.Set(*w.key, w.Value)
}

func (w *Writer) deleteEntry(t *Table, keyString []byte, id layout.RecordID) {
	if t.building() {
		w.noteAside(t, layout.SideDelete, keyString, id, nil)
		return
	}
	*w.key = t.EntryKey((*w.key)[:0], keyString, id)
	w.txn.Delete(*w.key)
}

// setMultikey makes the bits that the fresh keys need visible to readers at once, and stores those that are not stored.
func (w *Writer) setMultikey(t *Table) {
	if t.fresh.None || !t.fresh.IsMultikey() {
		return
	}
	if t.Wild != nil {
		w.setMultikeyPaths(t)
		return
	}
	if t.Multikey.HasStored(t.fresh.Multikey) {
		return
	}
	t.Multikey.See(t.fresh.Multikey)
	multikey.Stored{Bits: t.fresh.Multikey}.Set(w.txn, t.ID)
	if t.bits == nil {
		t.bits = make([]uint64, len(t.Fields))
	}
	for i, b := range t.fresh.Multikey {
		t.bits[i] |= b
	}
}

// setMultikeyPaths is setMultikey for a wildcard index.
func (w *Writer) setMultikeyPaths(t *Table) {
	if t.Multikey.HasStoredPaths(&t.fresh.Keys) {
		return
	}
	paths := t.Multikey.SeePaths(t.fresh.Paths())
	multikey.Stored{Paths: paths}.Set(w.txn, t.ID)
	t.paths = paths.Union(t.paths)
}

// moveDeadline is moveEntries for a TTL index on _ts.
func (w *Writer) moveDeadline(t *Table, old, rec layout.Record) {
	if old.ID != nil {
		if key := w.order.AppendDeadline((*w.key)[:0], t.Definition, old); key != nil {
			*w.key = key
			w.deleteDeadline(t, old.ID)
			t.surplus--
		} else if w.order.Implies(t.Definition, old.ID) {
			w.implied--
		}
		t.surplus++
	}
	if rec.ID != nil {
		if key := w.order.AppendDeadline((*w.key)[:0], t.Definition, rec); key != nil {
			*w.key = key
			w.putDeadline(t, rec.ID)
			t.surplus++
		} else if w.order.Implies(t.Definition, rec.ID) {
			w.implied++
		}
		t.surplus--
	}
}

// putDeadline writes the entry whose key is in *w.key.
func (w *Writer) putDeadline(t *Table, id layout.RecordID) {
	if t.building() {
		w.noteAside(t, layout.SidePut, deadlineString(*w.key, id), id, nil)
		return
	}
	w.txn.Set(*w.key, nil)
}

func (w *Writer) deleteDeadline(t *Table, id layout.RecordID) {
	if t.building() {
		w.noteAside(t, layout.SideDelete, deadlineString(*w.key, id), id, nil)
		return
	}
	w.txn.Delete(*w.key)
}

// deadlineString is a copy of what stands before the record id in the key of an entry of a TTL index on _ts.
func deadlineString(key []byte, id layout.RecordID) []byte {
	return slices.Clone(key[layout.TableLength : len(key)-len(id)])
}

// noteAside writes a row for an entry of an index that is being built.
func (w *Writer) noteAside(t *Table, operation byte, keyString []byte, id layout.RecordID, typeBits []byte) {
	*w.key = t.SideRowKey((*w.key)[:0], t.side, t.generation, keyString, id)
	w.Value = layout.SideRowValue(w.Value[:0], operation, id, typeBits)
	w.txn.Set(*w.key, w.Value)
}

// noteSkipped remembers a record whose keys cannot be computed.
func (w *Writer) noteSkipped(t *Table, id layout.RecordID) {
	*w.key = append(layout.SideKey((*w.key)[:0], t.side, layout.SkippedGeneration), id...)
	w.txn.Set(*w.key, nil)
}

// Flush adds what was counted to the indexes' counters, but for those that are being built, whose entries the builder counts.
func (w *Writer) Flush() {
	for i := range w.tables {
		t := &w.tables[i]
		if t.surplus != 0 && !t.building() {
			w.txn.Add(layout.CounterKey(nil, layout.OfIndex, t.ID, layout.CountSurplus), t.surplus)
		}
		t.surplus = 0
	}
}

// Multikey is what the transaction stores of indexes.
func (w *Writer) Multikey() (changes []meaning.MultikeyChange) {
	for i := range w.tables {
		if t := &w.tables[i]; t.bits != nil || t.paths != nil {
			changes = append(changes, meaning.MultikeyChange{Index: t.ID, Stored: multikey.Stored{Bits: t.bits, Paths: t.paths}})
		}
	}
	return changes
}

// Removed takes note of dead entries that were removed from an index.
func (w *Writer) Removed(index uint32, n int) {
	for i := range w.tables {
		if t := &w.tables[i]; !t.building() && t.ID == index {
			t.surplus -= int64(n)
		}
	}
}

// Merge counts what another one of the same collection has counted.
func (w *Writer) Merge(o *Writer) {
	for i := range w.tables {
		w.tables[i].surplus += o.tables[i].surplus
	}
}

// Added is how many entries were added, less those that were removed, where there are so many more documents than there were.
func (w *Writer) Added(documents int64) int64 {
	n := w.implied
	for i := range w.tables {
		if t := &w.tables[i]; !t.building() {
			n += documents + t.surplus
		}
	}
	return n
}
