package storage

import (
	"context"
	"errors"
	"fmt"

	"github.com/ebbdb/ebb/internal/bson"
	"github.com/ebbdb/ebb/internal/index"
	"github.com/ebbdb/ebb/internal/namespace"
	"github.com/ebbdb/ebb/internal/storage/layout"
	"github.com/ebbdb/ebb/internal/storage/multikey"
	"github.com/ebbdb/ebb/internal/storage/walk"
)

// Validation is what Validate found out about a collection.
type Validation struct {
	Valid bool
	// Records counts those that are stored, hidden ones included; Invalid those whose bytes are not what they should be.
	Records, Invalid int64
	// Nonconforming counts the documents that the caller's check has refused.
	Nonconforming    int64
	Indexes          []IndexValidation // in the catalogue's order
	Errors, Warnings []string
	// Missing are entries that should be there, Extra ones that should not; at most maxFindings of each.
	Missing, Extra []IndexFinding
	// AllMissing and AllExtra are how many there are.
	AllMissing, AllExtra int64
	// Corrupt are records that cannot be read, at most maxFindings.
	Corrupt []RecordID
}

// IndexValidation is what Validate found out about one index.
type IndexValidation struct {
	Name  string
	Valid bool
	// Keys is the number of entries.
	Keys             int64
	Errors, Warnings []string
	// Unmarked says that a document has an array where the index is not marked as multikey.
	Unmarked bool
}

// IndexFinding is an entry that is where it should not be, or the other way round.
type IndexFinding struct {
	Index    string
	RecordID RecordID
	Key      []byte
}

// maxFindings bounds each list of a Validation.
const maxFindings = 100

// Validate reads a whole collection and all of its indexes, in one view, and checks that they agree in both directions:
// each record has all its entries and no entry is one too many; that counters and multikey bits are right; and that every
// document is well-formed BSON. conforms, unless it is nil, looks at each document and says what is wrong with it.
func (s *Store) Validate(ctx context.Context, ns namespace.NS, conforms func(bson.Doc) error) (*Validation, error) {
	v, err := s.View(ctx)
	if err != nil {
		return nil, err
	}
	defer v.Close()
	r, ok := v.Collection(ns)
	if !ok {
		return nil, notFound(ns)
	}
	return r.validate(conforms)
}

// validation is a Validate under way.
type validation struct {
	*Validation
	reader   *Reader
	conforms func(bson.Doc) error
	tables   []validatedTable
	bytes    int64
	key      []byte
	room     layout.IDRoom
}

type validatedTable struct {
	*tableIndex
	keys     index.Keys
	stored   multikey.Stored // in the view
	result   *IndexValidation
	expected int64 // entries, going by the records
	missing  int64
	dead     int64 // entries whose records were swept
	implied  int64 // by the ids of records that lie in the order of the index
}

func (r *Reader) validate(conforms func(bson.Doc) error) (*Validation, error) {
	v := &validation{Validation: &Validation{Valid: true}, reader: r.Unhidden(), conforms: conforms}
	if err := v.begin(); err != nil {
		return nil, err
	}
	if err := v.records(); err != nil {
		return nil, err
	}
	for i := range v.tables {
		if err := v.entries(&v.tables[i]); err != nil {
			return nil, err
		}
	}
	if err := v.counters(); err != nil {
		return nil, err
	}
	for i := range v.Indexes {
		v.Indexes[i].Valid = len(v.Indexes[i].Errors) == 0
		v.Valid = v.Valid && v.Indexes[i].Valid
	}
	v.Valid = v.Valid && len(v.Errors) == 0
	return v.Validation, nil
}

func (v *validation) begin() error {
	bits, err := multikey.Read(v.reader.view.reader)
	if err != nil {
		return err
	}
	c := v.reader.c
	v.Indexes = make([]IndexValidation, len(c.Indexes))
	for i, d := range c.Indexes {
		v.Indexes[i].Name = d.Name
		ix := c.index(d.ID)
		if ix == nil {
			continue
		}
		t := validatedTable{tableIndex: ix, result: &v.Indexes[i], stored: bits[d.ID].Of(d)}
		if t.CoversShapes() {
			t.keys.Ask = func() error { return context.Cause(v.reader.view.ctx) }
		}
		v.tables = append(v.tables, t)
	}
	return nil
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
	r := v.reader
	start := layout.RecordKey(nil, r.c.ID, nil)
	var w walk.Keys
	if err := w.OpenRange(r.view.ctx, r.view.reader, start); err != nil {
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
			v.corrupt(RecordID(w.Key()[layout.TableLength:]), err)
			continue
		}
		v.bytes += int64(len(rec.Doc))
		v.conform(rec)
		if err := v.record(rec); err != nil {
			return err
		}
	}
	return w.Err()
}

// conform holds a document against the caller's check.
func (v *validation) conform(rec Record) {
	if v.conforms == nil {
		return
	}
	err := v.conforms(rec.Doc)
	if err == nil {
		return
	}
	v.Nonconforming++
	if len(v.Warnings) < maxFindings {
		v.Warnings = append(v.Warnings, fmt.Sprintf("Document with record id %s does not conform to the BSON specification: %v", rec.ID, err))
	}
}

func (v *validation) corrupt(id RecordID, err error) {
	v.Invalid++
	if len(v.Corrupt) < maxFindings {
		v.Corrupt = append(v.Corrupt, id.Clone())
	}
	v.fail("Detected a corrupt record with id %s: %v", id, err)
}

func (v *validation) record(rec Record) error {
	switch c := v.reader.c; {
	case c.IsTimeSeries() && !c.inPlace(rec.ID, rec.Doc):
		v.fail("record %s is not where its measurement belongs", rec.ID)
	case c.IsClustered() && string(c.appendID(nil, rec.Doc.Lookup("_id"))) != string(rec.ID):
		v.fail("record %s is not where its _id %s belongs", rec.ID, rec.Doc.Lookup("_id"))
	case c.order.Has(rec.ID) && string(c.order.AppendPlace(nil, rec.Doc, rec.Modified)) != string(rec.ID.Place()):
		v.fail("record %s is not where its deadline belongs", rec.ID)
	}
	for i := range v.tables {
		t := &v.tables[i]
		if t.Kind == index.Deadline {
			if v.reader.c.order.Implies(t.Definition, rec.ID) {
				t.implied++
			}
			if key := v.reader.c.order.AppendDeadline(nil, t.Definition, rec); key != nil {
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

func (v *validation) recordKeys(t *validatedTable, rec Record) error {
	if err := t.Keys(rec.Doc, &t.keys); err != nil {
		if v.reader.view.ctx.Err() != nil {
			return context.Cause(v.reader.view.ctx)
		}
		t.fail("record %s cannot be in the index: %v", rec.ID, err)
		return nil
	}
	for i, bits := range t.keys.Multikey {
		if bits&^t.stored.Bits[i] != 0 || bits&^t.multikey.SeenIn(i) != 0 {
			t.result.Unmarked = true
			t.fail("Index %s is not marked as multikey in field %s although record %s has an array there", t.Name, t.Fields[i].Path, rec.ID)
		}
	}
	if t.Wild != nil && !(t.stored.Paths.HasAll(&t.keys) && t.multikey.SeenPaths().HasAll(&t.keys)) {
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

// expect notes when an entry is not there, or not as it should be.
func (v *validation) expect(t *validatedTable, key, value []byte, id RecordID) error {
	values, err := v.reader.view.reader.GetMany([][]byte{key})
	switch {
	case err != nil:
		return fmt.Errorf("storage: validate %s: %w", v.reader.c.NS, err)
	case values[0] != nil && string(values[0]) == string(value):
		return nil
	}
	t.missing++
	v.AllMissing++
	if len(v.Missing) < maxFindings {
		v.Missing = append(v.Missing, IndexFinding{t.Name, id.Clone(), append([]byte(nil), key[layout.TableLength:]...)})
	}
	if t.missing == 1 {
		t.fail("Detected missing index entries in %s, the first for record %s", t.Name, id)
	}
	return nil
}

// entries counts an index's entries. All that the records need were looked for, so when there are as many as needed and
// none is missing, there is none too many; otherwise those are looked for.
func (v *validation) entries(t *validatedTable) error {
	dead, err := v.reader.swept()
	if err != nil {
		return err
	}
	isDead := func(key, value []byte) bool {
		id, err := v.named(t, key, value)
		return err == nil && dead.Cover(id)
	}
	err = v.eachEntry(t, func(key, value []byte) error {
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
			v.Extra = append(v.Extra, IndexFinding{t.Name, id.Clone(), append([]byte(nil), key[layout.TableLength:]...)})
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
	if err := w.OpenRange(v.reader.view.ctx, v.reader.view.reader, layout.TableKey(nil, t.Definition)); err != nil {
		return err
	}
	defer w.Close()
	for w.Next() {
		value, err := w.Value()
		if err != nil {
			return fmt.Errorf("storage: validate %s: %w", v.reader.c.NS, err)
		}
		if err := f(w.Key(), value); err != nil {
			return err
		}
	}
	return w.Err()
}

// belongs says whether the record that an entry names has that entry.
func (v *validation) belongs(t *validatedTable, key, value []byte) (RecordID, bool, error) {
	id, err := v.named(t, key, value)
	if err != nil {
		return nil, false, nil // an entry that cannot be read belongs to nobody
	}
	rec, there, err := v.reader.stored(id)
	switch {
	case errors.Is(err, layout.ErrBrokenRecord):
		return id, true, nil // which was said of the record; what its entries should be nobody knows
	case err != nil || !there:
		return id, false, err
	}
	if t.Kind == index.Deadline {
		return id, string(v.reader.c.order.AppendDeadline(nil, t.Definition, rec)) == string(key), nil
	}
	if t.Keys(rec.Doc, &t.keys) != nil {
		return id, false, context.Cause(v.reader.view.ctx)
	}
	for i := range t.keys.Len() {
		if string(t.EntryKey(nil, t.keys.Key(i), id)) == string(key) {
			return id, true, nil
		}
	}
	return id, false, nil
}

func (v *validation) named(t *validatedTable, key, value []byte) (RecordID, error) {
	return t.EntryID(key, value, &v.room)
}

func (v *validation) counters() error {
	documents, bytes, err := v.reader.storedCounts()
	if err != nil {
		return err
	}
	if documents != v.Records {
		v.fail("the collection counts %d documents and has %d", documents, v.Records)
	}
	if bytes != v.bytes && v.Invalid == 0 {
		v.fail("the collection counts %d bytes and has %d", bytes, v.bytes)
	}
	for i := range v.tables {
		t := &v.tables[i]
		n, err := v.reader.Entries(t.Definition)
		if err != nil {
			return err
		}
		if n != t.result.Keys+t.dead {
			t.fail("the index counts %d entries and has %d", n, t.result.Keys+t.dead)
		}
		t.result.Keys += t.implied
	}
	return nil
}
