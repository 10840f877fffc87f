package indexddl

import (
	"context"
	"encoding/binary"
	"errors"
	"testing"

	"github.com/ebbdb/ebb/internal/bson"
	"github.com/ebbdb/ebb/internal/index"
	"github.com/ebbdb/ebb/internal/kv"
	"github.com/ebbdb/ebb/internal/storage/garbage"
	"github.com/ebbdb/ebb/internal/storage/layout"
)

// recatalogued closes the store and has the collection's catalogue document tell of each index what write does.
func (f *fixture) recatalogued(write func(x kv.Txn, b *bson.Builder, d *index.Definition)) kv.Txn {
	f.t.Helper()
	c := f.tested().Collection
	f.must(f.store.Close())
	x, err := f.engine.Begin()
	f.must(err)
	b := bson.Build()
	for it := c.Document().Iter(); it.Next(); {
		if it.Key() != "indexes" {
			b.Value(it.Key(), it.Value())
		}
	}
	b.Array("indexes")
	for i, d := range c.Indexes {
		b.Object(bson.IndexKey(i)).Int64("id", int64(d.ID))
		write(x, b, d)
		b.End()
	}
	x.Set(layout.CollectionKey(c.ID), b.End().Doc())
	return x
}

// asFormat1 makes the collection's catalogue document what format 1 kept, where a hashed index had no entries.
func (f *fixture) asFormat1() {
	f.t.Helper()
	x := f.recatalogued(func(x kv.Txn, b *bson.Builder, d *index.Definition) {
		b.Document("spec", d.Spec)
		if d.Kind == index.Ordered {
			return
		}
		for _, start := range garbage.OfIndex(d.ID).Ranges() {
			_, err := garbage.DeleteFew(x, start)
			f.must(err)
		}
	})
	x.Set(layout.FormatKey(), binary.BigEndian.AppendUint32(nil, 1))
	f.must(x.Commit(context.Background(), kv.Buffered))
}

// TestUpgradeFormat1: what format 1 could only define has its entries after the first start, and is left alone at the next.
func TestUpgradeFormat1(t *testing.T) {
	f := newFixture(t)
	f.createIndexes(`{key: {a: "hashed"}, name: "h"}`, `{key: {a: 1}, name: "a"}`, `{key: {t: "text"}, name: "t"}`)
	f.must(f.insert(`{_id: 1, a: 1}`, `{_id: 2, a: 1, t: "two words"}`, `{_id: 3}`))
	before := f.tested().Index("h")
	f.asFormat1()
	f.open()
	f.validate()
	after := f.tested().Index("h")
	if after.ID == before.ID || !after.Built() {
		t.Errorf("the index %+v was not built anew", after)
	}
	v, err := f.store.View(context.Background())
	f.must(err)
	r := f.tested().Read(v)
	n, err := r.Entries(after)
	words, err2 := r.Entries(f.tested().Index("t"))
	if n != 3 || words != 2 {
		t.Errorf("they have %d and %d entries", n, words)
	}
	f.must(errors.Join(err, err2, v.Close()))
	f.reopen()
	if again := f.tested().Index("h"); again.ID != after.ID {
		t.Error("it was built again at the next start")
	}
}

// inForm1 has the collection's indexes in form 1, and says of those with a collation that it is German.
func (f *fixture) inForm1() {
	f.t.Helper()
	x := f.recatalogued(func(_ kv.Txn, b *bson.Builder, d *index.Definition) {
		b.Int32("form", 1).Object("spec")
		for it := d.Spec.Iter(); it.Next(); {
			if it.Key() == "collation" {
				b.Object("collation").String("locale", "de").End()
			} else {
				b.Value(it.Key(), it.Value())
			}
		}
		b.End()
	})
	f.must(x.Commit(context.Background(), kv.Buffered))
}

// TestUpgradeCollations: in form 1 an index with a collation could be in the order of another language than it says. It is built anew, and others are left alone.
func TestUpgradeCollations(t *testing.T) {
	f := newFixture(t)
	f.createIndexes(`{key: {a: 1}, name: "plain"}`, `{key: {a: 1}, name: "ordered", collation: {locale: "sv"}}`, `{key: {b: 1}, name: "unique", unique: true, collation: {locale: "sv"}}`,
		`{key: {a: "hashed"}, name: "hashed", collation: {locale: "sv"}}`, `{key: {"$**": 1}, name: "wild", collation: {locale: "sv"}}`,
		`{key: {d: 1}, name: "dates", expireAfterSeconds: 1000000000, collation: {locale: "sv"}}`)
	f.must(f.insert(`{_id: 1, a: "ö", b: "ä", d: {$date: "2026-01-01T00:00:00Z"}}`, `{_id: 2, a: "z", b: "å"}`, `{_id: 3, a: "o", b: "y", d: {$date: "2026-01-02T00:00:00Z"}}`))
	f.inForm1()
	before := map[string]uint32{}
	f.open()
	f.validate()
	for _, d := range f.tested().Indexes {
		before[d.Name] = d.ID
		if !d.Built() {
			t.Errorf("the index %+v was not built", d)
		}
	}
	f.must(f.insert(`{_id: 4, a: "ü", b: "é", d: {$date: "2026-01-03T00:00:00Z"}}`))
	f.reopen()
	f.validate()
	for _, d := range f.tested().Indexes {
		if before[d.Name] != d.ID {
			t.Errorf("%s was built again at the next start", d.Name)
		}
	}
}

// TestUpgradeRefused: an index that the documents do not fit into does not keep a store from being opened.
func TestUpgradeRefused(t *testing.T) {
	f := newFixture(t)
	f.createIndexes(`{key: {a: "hashed"}, name: "h"}`, `{key: {b: 1}, name: "b"}`)
	f.must(f.insert(`{_id: 1, b: 1}`))
	f.asFormat1()
	c := f.tested()
	x, err := f.engine.Begin()
	f.must(err)
	x.Set(layout.RecordKey(nil, 1, layout.SequenceID(1)), layout.AppendRecord(nil, 0, bson.MustDoc(`{_id: 1, a: [1], b: 1}`)))
	x.Add(layout.CounterKey(nil, layout.OfCollection, 1, layout.CountBytes), int64(len(bson.MustDoc(`{_id: 1, a: [1], b: 1}`))-len(bson.MustDoc(`{_id: 1, b: 1}`))))
	f.must(x.Commit(context.Background(), kv.Buffered))
	f.open()
	if d := f.tested().Index("h"); d.Built() || d.ID != c.Index("h").ID {
		t.Errorf("got %+v", d)
	}
	f.must(f.insert(`{_id: 2, a: [2]}`))
	f.validate()
}
