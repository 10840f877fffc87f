package exec

import (
	"context"
	"fmt"
	"testing"

	"github.com/ebbdb/ebb/internal/bson"
	"github.com/ebbdb/ebb/internal/memory"
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

// watching gives documents, and looks what the operation holds.
type watching struct {
	Iterator
	op   *Op
	most int64
}

func (w *watching) Next(ctx context.Context) (bson.Doc, error) {
	w.most = max(w.most, w.op.Memory.Used())
	return w.Iterator.Next(ctx)
}

// TestFacetShares: all that the pipelines of a $facet sort and group takes no more memory than one of them may.
func TestFacetShares(t *testing.T) {
	const each, most = 1000, 4 << 20
	for _, stage := range []string{`{$sort: {s: -1}}`, `{$group: {_id: {$rand: {}}, s: {$push: "$s"}}}`} {
		facets := ""
		for i := range 20 {
			facets += fmt.Sprintf(`f%d: [%s, {$count: "n"}], `, i, stage)
		}
		op := newTestOp(&collections{}, nil)
		op.TempDir, op.AllowDiskUse, op.MaxMemory, op.Memory = t.TempDir(), true, most, &memory.Account{}
		p, err := op.Parser.Parse(bson.MustParse(`[{$facet: {`+facets+`}}]`), pipeline.Options{NS: namespace.NS{DB: "db", Coll: "c"}})
		if err != nil {
			t.Fatal(err)
		}
		source := &watching{&counting{doc: bson.Build().String("s", string(make([]byte, facetBatch/each))).Doc(), left: 3 * each}, op, 0}
		it, err := Build(op, p, source)
		if err != nil {
			t.Fatal(err)
		}
		d, err := it.Next(context.Background())
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range d.Values(nil) {
			if n, _ := f.Doc().Index(0).Doc().Lookup("n").AsInt64(); n != 3*each {
				t.Errorf("%s: %d documents, not %d", stage, n, 3*each)
			}
		}
		if source.most > facetBatch+2*most {
			t.Errorf("%s: %d bytes held, where one stage may hold %d", stage, source.most, most)
		}
		if err := it.Close(); err != nil {
			t.Error(err)
		}
	}
}
