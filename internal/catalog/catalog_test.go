package catalog

import (
	"testing"
	"unicode/utf8"

	"github.com/ebbdb/ebb/internal/bson"
	"github.com/ebbdb/ebb/internal/index"
	"github.com/ebbdb/ebb/internal/match"
	"github.com/ebbdb/ebb/internal/mongoerr"
	"github.com/ebbdb/ebb/internal/namespace"
)

func newCollection(id uint32, name, options string) *Collection {
	return &Collection{ID: id, NS: namespace.Split(name), UUID: [16]byte{byte(id)}, Options: ReadOptions(bson.MustDoc(options))}
}

func names(c *Catalog) (out string) {
	for _, db := range c.Databases() {
		for _, coll := range c.Collections(db) {
			out += coll.NS.String() + " "
		}
	}
	return out
}

// TestVersions: a change leaves the versions before it as they were.
func TestVersions(t *testing.T) {
	empty := New()
	a := newCollection(1, "db.a", "{}")
	one := empty.With(a)
	two := one.With(newCollection(2, "db.b", "{}")).With(newCollection(3, "other.a", "{}"))
	renamed := two.With(a.WithName(namespace.Split("new.a")))
	gone := renamed.Without(a)
	for _, c := range []struct {
		version *Catalog
		want    string
	}{{empty, ""}, {one, "db.a "}, {two, "db.a db.b other.a "}, {renamed, "db.b new.a other.a "}, {gone, "db.b other.a "}, {gone.Without(a), "db.b other.a "}} {
		if got := names(c.version); got != c.want {
			t.Errorf("got %q, want %q", got, c.want)
		}
	}
	if renamed.ByID(1).NS.String() != "new.a" || renamed.ByUUID([16]byte{1}) != renamed.ByID(1) || two.ByID(1) != a || gone.ByID(1) != nil {
		t.Error("not found by number or uuid")
	}
	if gone.HasDatabase("new") || !two.HasDatabase("other") || two.Collection(namespace.Split("none.a")) != nil {
		t.Error("a database is there without collections, or the other way round")
	}
	if all := two.All(); len(all) != 3 || all[0].ID != 1 || all[2].ID != 3 {
		t.Errorf("all are %v", all)
	}
	defer func() {
		if recover() == nil {
			t.Error("two collections may have one name")
		}
	}()
	one.With(newCollection(9, "db.a", "{}"))
}

// TestStored: what is stored reads back the same, whatever the collection's default collation.
func TestStored(t *testing.T) {
	parser := index.NewParser(match.NewParser())
	coll := newCollection(7, "db.with.dots", `{capped: true, size: 4096, max: 3.0, collation: {locale: "en"}, validator: {a: 1}, validationLevel: "strict", x: NumberLong(1)}`)
	for i, spec := range []string{
		`{v: 2, key: {_id: 1}, name: "_id_"}`,
		`{v: 2, key: {a: -1, b: 1}, name: "ab", unique: true, partialFilterExpression: {a: 1}}`,
		`{v: 2, key: {d: 1}, name: "d", expireAfterSeconds: 5, hideExpired: true}`,
	} {
		d, err := parser.Load(bson.MustDoc(spec), nil)
		if err != nil {
			t.Fatal(err)
		}
		coll.Indexes = append(coll.Indexes, d.WithID(uint32(20+i)))
	}
	got, err := Load(coll.Document(), parser)
	if err != nil {
		t.Fatal(err)
	}
	if got.Document().Text() != coll.Document().Text() || got.NS != coll.NS || got.UUID != coll.UUID || got.ID != 7 {
		t.Errorf("got %s, want %s", got.Document(), coll.Document())
	}
	if o := got.Options; !o.Capped || o.Size != 4096 || o.Max != 3 || o.Collation == nil || o.Validator == nil || o.ValidationLevel != "strict" {
		t.Errorf("options are %+v", o)
	}
	if d := got.Index("ab"); d == nil || d.ID != 21 || !d.Unique || d.Collator() != nil || got.IndexByID(22).ExpireAfterSeconds != 5 || got.IDIndex() != got.Indexes[0] {
		t.Errorf("indexes are %+v", got.Indexes)
	}
}

// TestBroken: entries that make no sense are refused with words, not with a panic.
func TestBroken(t *testing.T) {
	parser := index.NewParser(match.NewParser())
	for _, doc := range []bson.Doc{
		nil, {1, 2, 3}, bson.EmptyDoc, bson.MustDoc(`{id: 1, db: "a", coll: "b"}`),
		bson.MustDoc(`{id: NumberLong(1), db: "", coll: "b", uuid: null}`),
	} {
		if _, err := Load(doc, parser); err == nil {
			t.Errorf("%x is taken", []byte(doc))
		}
	}
	uuid := newCollection(1, "a.b", "{}").Document()
	for _, indexes := range []string{`[1]`, `[{}]`, `[{id: NumberLong(1)}]`, `[{id: NumberLong(1), spec: {}}]`, `[{id: NumberLong(1), spec: {key: {a: "no"}}}]`} {
		b := bson.Build()
		for it := uuid.Iter(); it.Next(); {
			if it.Key() != "indexes" {
				b.Value(it.Key(), it.Value())
			}
		}
		doc := b.Value("indexes", bson.MustDoc("{a: "+indexes+"}").Lookup("a")).Doc()
		if _, err := Load(doc, parser); err == nil {
			t.Errorf("%s is taken", doc)
		}
	}
}

// TestKinds: what options make of a collection.
func TestKinds(t *testing.T) {
	if c := newCollection(1, "a.b", `{viewOn: "c", pipeline: [{$match: {}}]}`); !c.IsView() || c.Options.Pipeline.Count() != 1 {
		t.Error("no view")
	}
	c := newCollection(1, "a.b", `{clusteredIndex: {key: {_id: 1}, unique: true, name: "own"}, expireAfterSeconds: NumberLong(60)}`)
	if !c.IsClustered() || c.Options.Clustered.Name != "own" || !c.Options.HasTTL || c.Options.ExpireAfterSeconds != 60 || c.IDIndex() != nil {
		t.Error("not clustered")
	}
	if newCollection(1, "a.b", `{clusteredIndex: true}`).Options.Clustered.Name != "_id_" {
		t.Error("the clustered index has no name")
	}
	if newCollection(1, "a.b", `{clusteredIndex: false, expireAfterSeconds: NaN}`).Options.HasTTL {
		t.Error("NaN is a TTL")
	}
}

// TestNamesAreText refuses what no client could read in a list of collections.
func TestNamesAreText(t *testing.T) {
	for _, ns := range []namespace.NS{{DB: "a", Coll: "b\xff"}, {DB: "\xc3", Coll: "b"}, {DB: "a", Coll: "\xe2\x82"}} {
		err := New().CheckCreate(ns)
		if !mongoerr.Is(err, mongoerr.InvalidNamespace) || !utf8.ValidString(err.Error()) {
			t.Errorf("%q: %v", ns, err)
		}
	}
	if err := New().CheckCreate(namespace.NS{DB: "ä", Coll: "日本"}); err != nil {
		t.Error(err)
	}
}
