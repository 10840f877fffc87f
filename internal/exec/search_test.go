package exec

import (
	"context"
	"fmt"
	"testing"

	"github.com/ebbdb/ebb/internal/bson"
	"github.com/ebbdb/ebb/internal/fulltext"
	"github.com/ebbdb/ebb/internal/fulltext/mapping"
	"github.com/ebbdb/ebb/internal/mongoerr"
)

// TestSearchIsBounded: what a search keeps of the documents is counted, and given back.
func TestSearchIsBounded(t *testing.T) {
	db := &collections{colls: map[string][]bson.Doc{}}
	for i := range 1000 {
		db.colls["c"] = append(db.colls["c"], bson.MustDoc(fmt.Sprintf(`{_id: %d, t: "some words"}`, i)))
	}
	for _, c := range []struct {
		memory int64
		fits   bool
	}{{1000, false}, {10 << 20, true}} {
		op := newTestOp(db, nil)
		op.MaxMemory = c.memory
		in, err := openStages(t, op, `[]`)
		if err != nil {
			t.Fatal(err)
		}
		s, err := OpenSearch(t.Context(), op, "$searchMeta", wordSearch(t), func(context.Context) (Iterator, error) { return in, nil }, nil, true)
		if err != nil {
			t.Fatal(err)
		}
		doc, err := s.Next(t.Context())
		if c.fits != (err == nil) || err != nil && !mongoerr.Is(err, mongoerr.QueryExceededMemoryLimitNoDiskUseAllowed) {
			t.Errorf("in %d bytes: %s, %v", c.memory, doc, err)
		}
		if err := s.Close(); err != nil || s.held.bytes != 0 {
			t.Errorf("%d bytes are held at the end: %v", s.held.bytes, err)
		}
	}
}

func wordSearch(t *testing.T) *fulltext.Search {
	t.Helper()
	d, err := mapping.Parse(bson.MustDoc(`{mappings: {dynamic: true}}`))
	if err != nil {
		t.Fatal(err)
	}
	q, err := fulltext.ParseQuery(bson.MustDoc(`{text: {query: "words", path: "t"}}`), false)
	if err != nil {
		t.Fatal(err)
	}
	s, err := fulltext.New(d, q)
	if err != nil {
		t.Fatal(err)
	}
	return s
}
