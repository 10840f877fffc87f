package fulltext

import (
	"testing"

	"github.com/ebbdb/ebb/internal/bson"
	"github.com/ebbdb/ebb/internal/fieldpath"
	"github.com/ebbdb/ebb/internal/fulltext/mapping"
)

// TestFacetKeepsNothingOfDocuments spoils each document after it was counted, as the next one spoils it that is read to its place.
func TestFacetKeepsNothingOfDocuments(t *testing.T) {
	at, err := fieldpath.New("s")
	if err != nil {
		t.Fatal(err)
	}
	f := &facet{name: "f", kind: "string", buckets: 2, at: at, field: &mapping.Field{StringFacet: true}, strings: map[string]*int64{}}
	for _, text := range []string{"a", "b", "a", "c", "b", "a"} {
		doc := bson.Build().String("s", text).Doc()
		f.count(doc)
		clear(doc)
	}
	b := bson.Build()
	f.write(b)
	const want = `{ f: { buckets: [ { _id: "a", count: 3 }, { _id: "b", count: 2 } ] } }`
	if got := b.Doc().Value().String(); got != want {
		t.Errorf("%s, want %s", got, want)
	}
}
