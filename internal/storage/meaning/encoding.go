package meaning

import (
	"bytes"
	"errors"
	"fmt"
	"math"

	"github.com/ebbdb/ebb/internal/bson"
	"github.com/ebbdb/ebb/internal/catalog"
	"github.com/ebbdb/ebb/internal/index"
	"github.com/ebbdb/ebb/internal/kv"
	"github.com/ebbdb/ebb/internal/namespace"
	"github.com/ebbdb/ebb/internal/storage/expiryorder"
	"github.com/ebbdb/ebb/internal/storage/layout"
	"github.com/ebbdb/ebb/internal/storage/multikey"
	"github.com/ebbdb/ebb/internal/storage/oplog"
)

// The binary form of a Meaning is a BSON document, so that more can be added. What the Commit's keys say already is not in it:
// the catalogue's documents and the multikey bits are read from them. What is zero is left out.
//
//	changes: [{collection, documents, lastSequence, reserved, multikey: [index], tombstones, sweeps: [{span, date, documents, bytes}],
//	           inserted, movedForward, movedBack, trimmed, earliest}]
//	ddl:     {steps: [{put} or {drop}], events: [{kind, collection, uuid, db, coll, toDB, toColl, index}], nextCollection, nextIndex}
//	hold
//	timestamp

// ErrBroken is what Decode says of bytes that no writer has written.
var ErrBroken = errors.New("storage: the meaning of a commit is broken")

// Alone is kv.Meaning's: where the catalogue changes, or what the store knows of a whole collection, the order of commits is not enough to go by.
func (m *Meaning) Alone() bool {
	if m.DDL != nil || m.Hold != nil {
		return true
	}
	for _, c := range m.Changes {
		if len(c.Sweeps) > 0 || c.Tombstones != TombstonesAsBefore || c.Moved[Forward] || c.Moved[Back] || c.Trimmed != nil {
			return true
		}
	}
	return false
}

// Needs is kv.Meaning's.
func (m *Meaning) Needs(key []byte) bool { return len(key) > 0 && key[0] == layout.MetaPrefix }

// AppendBinary is kv.Meaning's.
func (m *Meaning) AppendBinary(dst []byte) ([]byte, error) {
	b := bson.Build()
	b.Array("changes")
	for i, c := range m.Changes {
		b.Object(bson.IndexKey(i))
		c.encode(b)
		b.End()
	}
	b.End()
	if m.DDL != nil {
		b.Object("ddl")
		m.DDL.encode(b)
		b.End()
	}
	if m.Hold != nil {
		b.Int64("hold", *m.Hold)
	}
	if m.Timestamp != 0 {
		b.Int64("timestamp", int64(m.Timestamp))
	}
	return append(dst, b.Doc()...), nil
}

func (c *Change) encode(b *bson.Builder) {
	b.Int64("collection", int64(c.Collection))
	if len(c.documents) > 0 {
		b.Binary("documents", 0, c.documents)
	}
	if c.LastSequence != 0 {
		b.Int64("lastSequence", int64(c.LastSequence))
	}
	if c.Reserved != 0 {
		b.Int64("reserved", int64(c.Reserved))
	}
	if len(c.Multikey) > 0 {
		b.Array("multikey")
		for i, m := range c.Multikey {
			b.Int64(bson.IndexKey(i), int64(m.Index))
		}
		b.End()
	}
	if c.Tombstones != TombstonesAsBefore {
		b.Int64("tombstones", int64(c.Tombstones))
	}
	if len(c.Sweeps) > 0 {
		b.Array("sweeps")
		for i, s := range c.Sweeps {
			b.Object(bson.IndexKey(i)).Int64("span", int64(s.Span)).Int64("date", s.Date).Int64("documents", s.All.Documents).
				Int64("bytes", s.All.Bytes)
			if len(s.Spared) > 0 {
				b.Array("spared")
				for i, c := range s.Spared {
					b.Object(bson.IndexKey(i)).Int64("date", c.Date).Int64("documents", c.Documents).Int64("bytes", c.Bytes).End()
				}
				b.End()
			}
			b.End()
		}
		b.End()
	}
	for _, flag := range []struct {
		name string
		set  bool
	}{{"inserted", c.Inserted}, {"movedForward", c.Moved[Forward]}, {"movedBack", c.Moved[Back]}} {
		if flag.set {
			b.Bool(flag.name, true)
		}
	}
	if c.Trimmed != nil {
		b.Binary("trimmed", 0, c.Trimmed)
	}
	if c.Earliest != math.MaxInt64 {
		b.Int64("earliest", c.Earliest)
	}
}

func (d *DDL) encode(b *bson.Builder) {
	b.Array("steps")
	for i, step := range d.Steps {
		b.Object(bson.IndexKey(i))
		if step.Put != nil {
			b.Int64("put", int64(step.Put.ID))
		} else {
			b.Int64("drop", int64(step.Drop))
		}
		b.End()
	}
	b.End().Array("events")
	for i, e := range d.Events {
		b.Object(bson.IndexKey(i)).Int64("kind", int64(e.Kind)).Int64("collection", int64(e.Collection)).Binary("uuid", 4, e.UUID[:]).
			String("db", e.NS.DB).String("coll", e.NS.Coll)
		if e.To != (namespace.NS{}) {
			b.String("toDB", e.To.DB).String("toColl", e.To.Coll)
		}
		if e.Index != nil {
			b.Int64("index", int64(e.Index.ID))
		}
		b.End()
	}
	b.End()
}

// maxDepth bounds the nesting of an encoded Meaning.
const maxDepth = 8

// Decode is the Meaning of a Commit that comes next, when the catalogue is the current one; nil where it has none.
func Decode(c *kv.Commit, current *catalog.Catalog, indexes *index.Parser) (*Meaning, error) {
	var encoded kv.EncodedMeaning
	switch m := c.Meaning.(type) {
	case nil:
		return nil, nil
	case *Meaning:
		return m, nil
	case kv.EncodedMeaning:
		encoded = m
	}
	if err := bson.Validate(bson.Doc(encoded), maxDepth); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrBroken, err)
	}
	r := &reader{indexes: indexes, commit: c, current: current}
	m := r.meaning(bson.Doc(encoded))
	if r.err != nil {
		return nil, fmt.Errorf("%w: %w", ErrBroken, r.err)
	}
	return m, nil
}

// reader reads a Meaning, and what belongs to it of the Commit's keys. The first error stands.
type reader struct {
	indexes  *index.Parser
	commit   *kv.Commit
	current  *catalog.Catalog
	multikey map[uint32]*multikey.Stored // of all the Commit's keys, once it was asked for
	err      error
}

func (r *reader) fail(format string, args ...any) {
	if r.err == nil {
		r.err = fmt.Errorf(format, args...)
	}
}

func (r *reader) int(d bson.Doc, name string, missing int64) int64 {
	switch v := d.Lookup(name); v.Type {
	case bson.TypeInt64:
		return v.Int64()
	case bson.TypeMissing:
	default:
		r.fail("%s is a %s", name, v.Type)
	}
	return missing
}

func (r *reader) number(d bson.Doc, name string) uint32 {
	n := r.int(d, name, 0)
	if n < 0 || n > math.MaxUint32 {
		r.fail("%s is %d", name, n)
	}
	return uint32(n)
}

func (r *reader) bytes(d bson.Doc, name string) []byte {
	switch v := d.Lookup(name); v.Type {
	case bson.TypeBinary:
		_, data := v.Binary()
		return data
	case bson.TypeMissing:
	default:
		r.fail("%s is a %s", name, v.Type)
	}
	return nil
}

func (r *reader) flag(d bson.Doc, name string) bool {
	v := d.Lookup(name)
	return v.Type == bson.TypeBool && v.Bool()
}

func (r *reader) text(d bson.Doc, name string) string {
	v := d.Lookup(name)
	if v.Type != bson.TypeString {
		return ""
	}
	return v.Str()
}

// each calls f for each document of an array.
func (r *reader) each(d bson.Doc, name string, f func(bson.Doc)) {
	for _, v := range r.values(d, name) {
		if v.Type != bson.TypeObject {
			r.fail("%s has a %s", name, v.Type)
			return
		}
		f(v.Doc())
	}
}

func (r *reader) values(d bson.Doc, name string) []bson.Value {
	v := d.Lookup(name)
	if v.Type != bson.TypeArray {
		return nil
	}
	return v.Doc().Values(nil)
}

func (r *reader) meaning(d bson.Doc) *Meaning {
	m := &Meaning{}
	r.each(d, "changes", func(d bson.Doc) { m.Changes = append(m.Changes, r.change(d)) })
	if v := d.Lookup("ddl"); v.Type == bson.TypeObject {
		m.DDL = r.ddl(v.Doc())
	}
	if v := d.Lookup("hold"); v.Type == bson.TypeInt64 {
		at := v.Int64()
		m.Hold = &at
	}
	m.Timestamp = oplog.Timestamp(r.int(d, "timestamp", 0))
	return m
}

func (r *reader) change(d bson.Doc) *Change {
	c := &Change{
		Collection: r.number(d, "collection"), documents: r.bytes(d, "documents"),
		LastSequence: uint64(r.int(d, "lastSequence", 0)), Reserved: uint64(r.int(d, "reserved", 0)),
		Tombstones: TombstoneChange(r.int(d, "tombstones", 0)), Inserted: r.flag(d, "inserted"),
		Trimmed: r.bytes(d, "trimmed"), Earliest: r.int(d, "earliest", math.MaxInt64),
	}
	c.Moved[Forward], c.Moved[Back] = r.flag(d, "movedForward"), r.flag(d, "movedBack")
	for _, v := range r.values(d, "multikey") {
		if v.Type != bson.TypeInt64 {
			r.fail("multikey has a %s", v.Type)
			break
		}
		number := uint32(v.Int64())
		if m := r.storedMultikey()[number]; m != nil {
			c.Multikey = append(c.Multikey, MultikeyChange{number, *m})
		}
	}
	r.each(d, "sweeps", func(d bson.Doc) {
		s := SweptSpan{byte(r.int(d, "span", 0)), r.int(d, "date", 0), expiryorder.Amount{Documents: r.int(d, "documents", 0), Bytes: r.int(d, "bytes", 0)}, nil}
		r.each(d, "spared", func(d bson.Doc) {
			s.Spared = append(s.Spared, expiryorder.Change{Span: s.Span, Date: r.int(d, "date", 0), Documents: r.int(d, "documents", 0), Bytes: r.int(d, "bytes", 0)})
		})
		if s.Span == 0 || s.Span == layout.OnNever || s.Span >= layout.Spans {
			r.fail("a span is %d", s.Span)
		}
		c.Sweeps = append(c.Sweeps, s)
	})
	rest := c.documents
	for ok := true; len(rest) > 0 && ok; {
		if _, rest, ok = rest.next(); !ok {
			r.fail("the documents of collection %d", c.Collection)
		}
	}
	return c
}

func (r *reader) ddl(d bson.Doc) *DDL {
	out := &DDL{Multikey: r.storedMultikey()}
	r.each(d, "steps", func(d bson.Doc) {
		if d.Lookup("put").IsMissing() {
			out.Steps = append(out.Steps, CatalogStep{Drop: r.number(d, "drop")})
			return
		}
		if coll := r.collection(r.number(d, "put")); coll != nil {
			out.Steps = append(out.Steps, CatalogStep{Put: coll})
		}
	})
	r.each(d, "events", func(d bson.Doc) {
		e := Event{Kind: EventKind(r.int(d, "kind", 0)), Collection: r.number(d, "collection"),
			NS: namespace.NS{DB: r.text(d, "db"), Coll: r.text(d, "coll")}, To: namespace.NS{DB: r.text(d, "toDB"), Coll: r.text(d, "toColl")}}
		if copy(e.UUID[:], r.bytes(d, "uuid")) != len(e.UUID) {
			r.fail("an event has no uuid")
		}
		if !d.Lookup("index").IsMissing() {
			e.Index = r.index(out, e.Collection, r.number(d, "index"))
		}
		out.Events = append(out.Events, e)
	})
	return out
}

// collection is what the Commit puts into the catalogue under a number.
func (r *reader) collection(id uint32) *catalog.Collection {
	op, ok := r.commit.Lookup(layout.CollectionKey(id))
	if !ok || op.Delete {
		r.fail("collection %d is put and not there", id)
		return nil
	}
	if err := bson.Validate(bson.Doc(op.Value), layout.MaxDepth); err != nil {
		r.fail("collection %d: %w", id, err)
		return nil
	}
	coll, err := catalog.Load(bson.Doc(op.Value).Clone(), r.indexes)
	if err != nil {
		r.fail("collection %d: %w", id, err)
		return nil
	}
	return coll
}

// index is the definition that an event is about: as it is put, or as it is before it goes.
func (r *reader) index(d *DDL, collection, number uint32) *index.Definition {
	for _, step := range d.Steps {
		if step.Put != nil && step.Put.ID == collection {
			if def := step.Put.IndexByID(number); def != nil {
				return def
			}
		}
	}
	if coll := r.current.ByID(collection); coll != nil {
		return coll.IndexByID(number)
	}
	return nil
}

// storedMultikey is what the Commit stores of indexes.
func (r *reader) storedMultikey() map[uint32]*multikey.Stored {
	if r.multikey != nil {
		return r.multikey
	}
	r.multikey = map[uint32]*multikey.Stored{}
	prefix := []byte{layout.MetaPrefix, layout.MetaMultikey}
	r.commit.Each(func(op kv.Op) {
		key, ok := bytes.CutPrefix(op.Key, prefix)
		if !ok || op.Delete {
			return
		}
		if err := multikey.Add(r.multikey, key); err != nil {
			r.fail("%w", err)
		}
	})
	return r.multikey
}
