package meaning_test

import (
	"errors"
	"math"
	"reflect"
	"strings"
	"testing"

	"github.com/ebbdb/ebb/internal/bson"
	"github.com/ebbdb/ebb/internal/catalog"
	"github.com/ebbdb/ebb/internal/index"
	"github.com/ebbdb/ebb/internal/kv"
	"github.com/ebbdb/ebb/internal/namespace"
	"github.com/ebbdb/ebb/internal/storage/expiryorder"
	"github.com/ebbdb/ebb/internal/storage/layout"
	"github.com/ebbdb/ebb/internal/storage/meaning"
	"github.com/ebbdb/ebb/internal/storage/multikey"
)

// TestRoundTrip encodes a Meaning that uses all there is, and decodes it beside the keys of its Commit.
func TestRoundTrip(t *testing.T) {
	spec := bson.Build().Int32("v", 2).Object("key").Int32("a", 1).End().String("name", "a_1").Doc()
	d, err := index.NewParser(nil).Parse(spec, bson.Doc(nil))
	if err != nil {
		t.Fatal(err)
	}
	d.ID = 9
	coll := (&catalog.Collection{ID: 7, UUID: [16]byte{1, 2}, NS: namespace.NS{DB: "db", Coll: "c"}, Options: catalog.ReadOptions(nil)}).
		WithIndexes([]*index.Definition{d})
	changed := meaning.NewChange(7)
	documents := []meaning.DocumentChange{
		{Op: meaning.DocumentInserted, ID: layout.SequenceID(1), Bytes: 40},
		{Op: meaning.DocumentMoved, ID: layout.RecordID(strings.Repeat("x", 300)), Was: layout.SequenceID(2), Bytes: 1, WasBytes: 1},
		{Op: meaning.DocumentExpired, ID: layout.SequenceID(3), WasBytes: math.MaxInt32},
	}
	for _, c := range documents {
		changed.Note(c)
	}
	changed.LastSequence, changed.Reserved, changed.Tombstones = 5, 100, meaning.TombstonesDeleted
	changed.Multikey = []meaning.MultikeyChange{{Index: 9, Stored: multikey.Stored{Bits: []uint64{2}}}}
	changed.Sweeps = []meaning.SweptSpan{{Span: layout.OnDefault, Date: -4, All: expiryorder.Amount{Documents: 3, Bytes: 90}}}
	changed.Inserted, changed.Moved[meaning.Back], changed.Trimmed, changed.Earliest = true, true, layout.SequenceID(1), 77
	held := int64(-1)
	m := &meaning.Meaning{Changes: []*meaning.Change{&changed}, Hold: &held, Timestamp: 1 << 40, DDL: &meaning.DDL{
		Steps:  []meaning.CatalogStep{{Put: coll}, {Drop: 3}},
		Events: []meaning.Event{{Kind: meaning.IndexCreated, Collection: 7, UUID: coll.UUID, NS: coll.NS, To: namespace.NS{DB: "e", Coll: "f"}, Index: d}}}}
	encoded, err := m.AppendBinary(nil)
	if err != nil {
		t.Fatal(err)
	}
	c := &kv.Commit{Meaning: kv.EncodedMeaning(encoded), Writes: &kv.WriteList{Ops: []kv.Op{
		{Key: layout.CollectionKey(7), Value: coll.Document()}, {Key: layout.MultikeyKey(9, 0, 1)}}}}
	got, err := meaning.Decode(c, catalog.New(), index.NewParser(nil))
	if err != nil {
		t.Fatal(err)
	}
	again, err := got.AppendBinary(nil)
	if err != nil || string(again) != string(encoded) {
		t.Fatalf("encoded again it is %s, and was %s, %v", bson.Doc(again), bson.Doc(encoded), err)
	}
	var seen []meaning.DocumentChange
	got.Changes[0].EachDocument(func(c meaning.DocumentChange) { seen = append(seen, c) })
	if !reflect.DeepEqual(seen, documents) {
		t.Fatalf("documents %v, want %v", seen, documents)
	}
	if s := got.Changes[0].Multikey[0].Stored.Bits[0]; s != 2 {
		t.Fatalf("multikey bits %b", s)
	}
	if e := got.DDL.Events[0]; e.Index == nil || e.Index.Name != "a_1" {
		t.Fatalf("the event's index is %v", e.Index)
	}
	if after := got.DDL.ApplyTo(catalog.New()); after.ByID(7) == nil || after.ByID(7).NS != coll.NS {
		t.Fatal("the catalogue has no collection 7")
	}
	if own, err := meaning.Decode(&kv.Commit{Meaning: m}, nil, nil); own != m || err != nil {
		t.Fatalf("a Meaning that is not encoded is %v, %v", own, err)
	}
}

// TestBroken decodes what no writer has written.
func TestBroken(t *testing.T) {
	change := func(f func(*bson.Builder)) []byte {
		b := bson.Build().Array("changes").Object("0").Int64("collection", 7)
		f(b)
		return b.End().End().Doc()
	}
	nested := bson.Build()
	for range 20 {
		nested.Array("0")
	}
	for range 20 {
		nested.End()
	}
	for name, encoded := range map[string][]byte{
		"no BSON":              []byte("no"),
		"nested too deeply":    nested.Doc(),
		"a change is a number": bson.Build().Array("changes").Int32("0", 1).End().Doc(),
		"collection":           bson.Build().Array("changes").Object("0").Int64("collection", 1<<32).End().End().Doc(),
		"documents":            change(func(b *bson.Builder) { b.Binary("documents", 0, []byte{1, 200}) }),
		"documents' type":      change(func(b *bson.Builder) { b.String("documents", "x") }),
		"span":                 change(func(b *bson.Builder) { b.Array("sweeps").Object("0").Int64("span", 0).End().End() }),
		"multikey":             change(func(b *bson.Builder) { b.Array("multikey").String("0", "x").End() }),
		"put and not there":    bson.Build().Object("ddl").Array("steps").Object("0").Int64("put", 7).End().End().End().Doc(),
		"an event's uuid":      bson.Build().Object("ddl").Array("events").Object("0").Int64("kind", 0).End().End().End().Doc(),
	} {
		c := &kv.Commit{Meaning: kv.EncodedMeaning(encoded), Writes: &kv.WriteList{}}
		if m, err := meaning.Decode(c, catalog.New(), index.NewParser(nil)); !errors.Is(err, meaning.ErrBroken) {
			t.Errorf("%s: %v, %v", name, m, err)
		}
	}
}
