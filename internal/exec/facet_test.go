package exec

import (
	"context"
	"testing"

	"github.com/ebbdb/ebb/internal/bson"
	"github.com/ebbdb/ebb/internal/namespace"
	"github.com/ebbdb/ebb/internal/pipeline"
)

// counting gives the same document again and again, and counts.
type counting struct {
	doc  bson.Doc
	left int
	read int
}

func (c *counting) Next(context.Context) (bson.Doc, error) {
	if c.read == c.left {
		return nil, nil
	}
	c.read++
	return c.doc, nil
}

func (c *counting) Close() error { return nil }

// TestFacetStops reads no batch more than the pipeline that goes on longest asks for.
func TestFacetStops(t *testing.T) {
	big := bson.Build().String("s", string(make([]byte, facetBatch/4))).Doc()
	for stages, want := range map[string]int{
		`[{$facet: {a: [{$limit: 1}], b: [{$limit: 2}]}}]`:                  4,
		`[{$facet: {a: [{$limit: 1}], b: [{$limit: 6}, {$count: "n"}]}}]`:   8,
		`[{$facet: {a: [{$limit: 1}], b: [{$count: "n"}]}}]`:                40,
		`[{$facet: {a: [{$match: {s: 1}}], b: [{$skip: 3}, {$limit: 1}]}}]`: 40,
	} {
		op := newTestOp(&collections{}, nil)
		p, err := op.Parser.Parse(bson.MustParse(stages), pipeline.Options{NS: namespace.NS{DB: "db", Coll: "c"}})
		if err != nil {
			t.Fatal(err)
		}
		source := &counting{doc: big, left: 40}
		it, err := Build(op, p, source)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := it.Next(context.Background()); err != nil {
			t.Fatal(err)
		}
		if source.read != want {
			t.Errorf("%s has read %d documents, not %d", stages, source.read, want)
		}
		if err := it.Close(); err != nil {
			t.Error(err)
		}
	}
}
