// Package validation checks a whole collection in one snapshot: that records and index entries agree in both directions, that each record
// lies where it belongs, and that counters and multikey bits are right. It reads and repairs nothing.
package validation

import (
	"context"
	"errors"
	"fmt"

	"github.com/ebbdb/ebb/internal/bson"
	"github.com/ebbdb/ebb/internal/catalog"
	"github.com/ebbdb/ebb/internal/index"
	"github.com/ebbdb/ebb/internal/kv"
	"github.com/ebbdb/ebb/internal/storage/expiryorder"
	"github.com/ebbdb/ebb/internal/storage/layout"
	"github.com/ebbdb/ebb/internal/storage/multikey"
	"github.com/ebbdb/ebb/internal/storage/walk"
)

// Collection is what is checked.
type Collection struct {
	*catalog.Collection
	Ctx      context.Context
	Snapshot kv.Reader
	// Indexes are those that keep entries.
	Indexes []Index
	Order   *expiryorder.Order
	// Tombstones are of records that were swept; their entries may still be there.
	Tombstones expiryorder.Tombstones
	// Documents and Bytes are what the collection counts.
	Documents, Bytes int64
	// IsInPlace says whether a record of a clustered collection, or of a time series, lies where its document belongs.
	IsInPlace func(layout.Record) bool
	// Conforms, unless it is nil, looks at each document and says what is wrong with it.
	Conforms func(bson.Doc) error
}

// Index is an index that is checked.
type Index struct {
	layout.Entries
	// Multikey is what readers go by, Stored what the snapshot has.
	Multikey *multikey.Index
	Stored   multikey.Stored
	// Counted is how many entries the index counts.
	Counted int64
}

// Result is what was found out about a collection.
type Result struct {
	Valid bool
	// Records counts those that are stored, hidden ones included; Invalid those whose bytes are not what they should be.
	Records, Invalid int64
	// Nonconforming counts the documents that the caller's check has refused.
	Nonconforming    int64
	Indexes          []IndexResult // in the catalogue's order
	Errors, Warnings []string
	// Missing are entries that should be there, Extra ones that should not; at most maxFindings of each.
	Missing, Extra []Finding
	// AllMissing and AllExtra are how many there are.
	AllMissing, AllExtra int64
	// Corrupt are records that cannot be read, at most maxFindings.
	Corrupt []layout.RecordID
}

// IndexResult is what was found out about one index.
type IndexResult struct {
	Name  string
	Valid bool
	// Keys is the number of entries.
	Keys             int64
	Errors, Warnings []string
	// Unmarked says that a document has an array where the index is not marked as multikey.
	Unmarked bool
}

// Finding is an entry that is where it should not be, or the other way round.
type Finding struct {
	Index    string
	RecordID layout.RecordID
	Key      []byte
}

// maxFindings bounds each list of a Result.
const maxFindings = 100

// validation is a Check under way.
type validation struct {
	*Result
	c      *Collection
	tables []validatedTable
	bytes  int64
	key    []byte
	room   layout.IDRoom
	wanted []wantedEntry // to be looked for
	arena  []byte        // of their bytes
}

// wantedEntry is an entry that a record should have.
type wantedEntry struct {
	table      *validatedTable
	key, value []byte
	id         layout.RecordID
}

// Entries are looked for so many at once, or so many bytes of them: each look costs a round trip in an engine that is not on this machine.
const (
	maxWanted      = 256
	maxWantedBytes = 1 << 20
)

type validatedTable struct {
	*Index
	keys     index.Keys
	result   *IndexResult
	expected int64 // entries, going by the records
	missing  int64
	dead     int64 // entries whose records were swept
	implied  int64 // by the ids of records that lie in the order of the index
}

// Check reads the collection and all of its indexes.
func Check(c *Collection) (*Result, error) {
	v := &validation{Result: &Result{Valid: true}, c: c}
	v.begin()
	if err := v.records(); err != nil {
		return nil, err
	}
	for i := range v.tables {
		if err := v.entries(&v.tables[i]); err != nil {
			return nil, err
		}
	}
	v.counters()
	for i := range v.Indexes {
		v.Indexes[i].Valid = len(v.Indexes[i].Errors) == 0
		v.Valid = v.Valid && v.Indexes[i].Valid
	}
	v.Valid = v.Valid && len(v.Errors) == 0
	return v.Result, nil
}

func (v *validation) begin() {
	results := map[uint32]*IndexResult{}
	v.Indexes = make([]IndexResult, len(v.c.Collection.Indexes))
	for i, d := range v.c.Collection.Indexes {
		v.Indexes[i].Name = d.Name
		results[d.ID] = &v.Indexes[i]
	}
	for i := range v.c.Indexes {
		t := validatedTable{Index: &v.c.Indexes[i]}
		t.result = results[t.ID]
		if t.CoversShapes() {
			t.keys.Ask = func() error { return context.Cause(v.c.Ctx) }
		}
		v.tables = append(v.tables, t)
	}
}

func (v *validation) fail(format string, args ...any) {
	if len(v.Errors) < maxFindings {
		v.Errors = append(v.Errors, fmt.Sprintf(format, args...))
	}
	v.Valid = false
}

func (t *validatedTable) fail(format string, args ...any) {
	if len(t.result.Errors) < maxFindings {
		t.result.Errors = append(t.result.Errors, fmt.Sprintf(format, args...))
	}
}

// records looks at every record and at its entries.
func (v *validation) records() error {
	start := layout.RecordKey(nil, v.c.ID, nil)
	var w walk.Keys
	if err := w.OpenRange(v.c.Ctx, v.c.Snapshot, start); err != nil {
		return err
	}
	defer w.Close()
	for w.Next() {
		v.Records++
		rec, err := w.Record()
		if err == nil {
			err = bson.Validate(rec.Doc, bson.MaxDepth)
		}
		if err != nil {
			v.corrupt(layout.RecordID(w.Key()[layout.TableLength:]), err)
			continue
		}
		v.bytes += int64(len(rec.Doc))
		v.conform(rec)
		if err := v.record(rec); err != nil {
			return err
		}
	}
	if err := w.Err(); err != nil {
		return err
	}
	return v.lookForWanted()
}

// conform holds a document against the caller's check.
func (v *validation) conform(rec layout.Record) {
	if v.c.Conforms == nil {
		return
	}
	err := v.c.Conforms(rec.Doc)
	if err == nil {
		return
	}
	v.Nonconforming++
	if len(v.Warnings) < maxFindings {
		v.Warnings = append(v.Warnings, fmt.Sprintf("Document with record id %s does not conform to the BSON specification: %v", rec.ID, err))
	}
}

func (v *validation) corrupt(id layout.RecordID, err error) {
	v.Invalid++
	if len(v.Corrupt) < maxFindings {
		v.Corrupt = append(v.Corrupt, id.Clone())
	}
	v.fail("Detected a corrupt record with id %s: %v", id, err)
}

func (v *validation) record(rec layout.Record) error {
	switch c := v.c; {
	case c.IsTimeSeries() && !c.IsInPlace(rec):
		v.fail("record %s is not where its measurement belongs", rec.ID)
	case c.IsClustered() && !c.IsInPlace(rec):
		v.fail("record %s is not where its _id %s belongs", rec.ID, rec.Doc.Lookup("_id"))
	case c.Order.Has(rec.ID) && !c.Order.IsPlaceOf(rec):
		v.fail("record %s is not where its deadline belongs", rec.ID)
	}
	for i := range v.tables {
		t := &v.tables[i]
		if t.Kind == index.Deadline {
			if v.c.Order.Implies(t.Definition, rec.ID) {
				t.implied++
			}
			if key := v.c.Order.AppendDeadline(nil, t.Definition, rec); key != nil {
				t.expected++
				if err := v.expect(t, key, nil, rec.ID); err != nil {
					return err
				}
			}
			continue
		}
		if err := v.recordKeys(t, rec); err != nil {
			return err
		}
	}
	return nil
}

func (v *validation) recordKeys(t *validatedTable, rec layout.Record) error {
	if err := t.Keys(rec.Doc, &t.keys); err != nil {
		if v.c.Ctx.Err() != nil {
			return context.Cause(v.c.Ctx)
		}
		t.fail("record %s cannot be in the index: %v", rec.ID, err)
		return nil
	}
	for i, bits := range t.keys.Multikey {
		if bits&^t.Stored.Bits[i] != 0 || bits&^t.Multikey.SeenIn(i) != 0 {
			t.result.Unmarked = true
			t.fail("Index %s is not marked as multikey in field %s although record %s has an array there", t.Name, t.Fields[i].Path, rec.ID)
		}
	}
	if t.Wild != nil && !(t.Stored.Paths.HasAll(&t.keys) && t.Multikey.SeenPaths().HasAll(&t.keys)) {
		t.fail("Index %s is not marked as multikey in all paths where record %s has arrays", t.Name, rec.ID)
	}
	t.expected += int64(t.keys.Len())
	for i := range t.keys.Len() {
		v.key = t.EntryKey(v.key[:0], t.keys.Key(i), rec.ID)
		if err := v.expect(t, v.key, t.EntryValue(nil, rec.ID, t.keys.TypeBits(i)), rec.ID); err != nil {
			return err
		}
	}
	return nil
}

// expect has an entry be looked for, soon.
func (v *validation) expect(t *validatedTable, key, value []byte, id layout.RecordID) error {
	keep := func(b []byte) []byte {
		begin := len(v.arena)
		v.arena = append(v.arena, b...)
		return v.arena[begin:len(v.arena):len(v.arena)]
	}
	v.wanted = append(v.wanted, wantedEntry{t, keep(key), keep(value), keep(id)})
	if len(v.wanted) < maxWanted && len(v.arena) < maxWantedBytes {
		return nil
	}
	return v.lookForWanted()
}

// lookForWanted notes which of the wanted entries are not there, or not as they should be.
func (v *validation) lookForWanted() error {
	if len(v.wanted) == 0 {
		return nil
	}
	keys := make([][]byte, len(v.wanted))
	for i, w := range v.wanted {
		keys[i] = w.key
	}
	values, err := v.c.Snapshot.GetMany(keys)
	if err != nil {
		return fmt.Errorf("storage: validate %s: %w", v.c.NS, err)
	}
	for i, w := range v.wanted {
		if values[i] == nil || string(values[i]) != string(w.value) {
			v.miss(w)
		}
	}
	v.wanted, v.arena = v.wanted[:0], v.arena[:0]
	return nil
}

func (v *validation) miss(w wantedEntry) {
	w.table.missing++
	v.AllMissing++
	if len(v.Missing) < maxFindings {
		v.Missing = append(v.Missing, Finding{w.table.Name, w.id.Clone(), append([]byte(nil), w.key[layout.TableLength:]...)})
	}
	if w.table.missing == 1 {
		w.table.fail("Detected missing index entries in %s, the first for record %s", w.table.Name, w.id)
	}
}

// entries counts an index's entries. All that the records need were looked for, so when there are as many as needed and
// none is missing, there is none too many; otherwise those are looked for.
func (v *validation) entries(t *validatedTable) error {
	dead := v.c.Tombstones
	isDead := func(key, value []byte) bool {
		id, err := v.named(t, key, value)
		return err == nil && dead.Cover(id)
	}
	err := v.eachEntry(t, func(key, value []byte) error {
		if dead != nil && isDead(key, value) {
			t.dead++
		} else {
			t.result.Keys++
		}
		return nil
	})
	if err != nil || t.missing == 0 && t.result.Keys == t.expected {
		return err
	}
	extra := 0
	err = v.eachEntry(t, func(key, value []byte) error {
		id, belongs, err := v.belongs(t, key, value)
		if err != nil || belongs || dead != nil && isDead(key, value) {
			return err
		}
		extra++
		v.AllExtra++
		if len(v.Extra) < maxFindings {
			v.Extra = append(v.Extra, Finding{t.Name, id.Clone(), append([]byte(nil), key[layout.TableLength:]...)})
		}
		return nil
	})
	if extra > 0 {
		t.fail("Detected %d extra index entries in %s", extra, t.Name)
	}
	return err
}

func (v *validation) eachEntry(t *validatedTable, f func(key, value []byte) error) error {
	var w walk.Keys
	if err := w.OpenRange(v.c.Ctx, v.c.Snapshot, layout.TableKey(nil, t.Definition)); err != nil {
		return err
	}
	defer w.Close()
	for w.Next() {
		value, err := w.Value()
		if err != nil {
			return fmt.Errorf("storage: validate %s: %w", v.c.NS, err)
		}
		if err := f(w.Key(), value); err != nil {
			return err
		}
	}
	return w.Err()
}

// belongs says whether the record that an entry names has that entry.
func (v *validation) belongs(t *validatedTable, key, value []byte) (layout.RecordID, bool, error) {
	id, err := v.named(t, key, value)
	if err != nil {
		return nil, false, nil // an entry that cannot be read belongs to nobody
	}
	rec, there, err := v.stored(id)
	switch {
	case errors.Is(err, layout.ErrBrokenRecord):
		return id, true, nil // which was said of the record; what its entries should be nobody knows
	case err != nil || !there:
		return id, false, err
	}
	if t.Kind == index.Deadline {
		return id, string(v.c.Order.AppendDeadline(nil, t.Definition, rec)) == string(key), nil
	}
	if t.Keys(rec.Doc, &t.keys) != nil {
		return id, false, context.Cause(v.c.Ctx)
	}
	for i := range t.keys.Len() {
		if string(t.EntryKey(nil, t.keys.Key(i), id)) == string(key) {
			return id, true, nil
		}
	}
	return id, false, nil
}

func (v *validation) named(t *validatedTable, key, value []byte) (layout.RecordID, error) {
	return t.EntryID(key, value, &v.room)
}

// stored is the record with the id.
func (v *validation) stored(id layout.RecordID) (rec layout.Record, there bool, err error) {
	value, err := v.c.Snapshot.Get(layout.RecordKey(nil, v.c.ID, id))
	switch {
	case errors.Is(err, kv.ErrNotFound):
		return rec, false, nil
	case err != nil:
		return rec, false, fmt.Errorf("storage: validate %s: %w", v.c.NS, err)
	}
	rec, err = layout.ReadRecord(id, value)
	return rec, err == nil, err
}

func (v *validation) counters() {
	if v.c.Documents != v.Records {
		v.fail("the collection counts %d documents and has %d", v.c.Documents, v.Records)
	}
	if v.c.Bytes != v.bytes && v.Invalid == 0 {
		v.fail("the collection counts %d bytes and has %d", v.c.Bytes, v.bytes)
	}
	for i := range v.tables {
		t := &v.tables[i]
		if n := t.result.Keys + t.dead; t.Counted != n {
			t.fail("the index counts %d entries and has %d", t.Counted, n)
		}
		t.result.Keys += t.implied
	}
}
