package planner

import (
	"strings"

	"github.com/ebbdb/ebb/internal/bson"
	"github.com/ebbdb/ebb/internal/match"
)

// Plan is how a query's documents are found. Every document that an access gives is still held against Filter, unless
// Filter is nil.
type Plan struct {
	Access Access
	// Filter is what a document must match; nil when the access alone decides.
	Filter *match.Filter
	// Ordered says that the documents come in the query's order, so that nothing need be sorted.
	Ordered bool
	// Considered are the accesses that lost.
	Considered []Access
}

// Access is where documents come from: *CollScan, *IndexScan, *IDHack, *GeoNear or *Nothing.
type Access interface {
	// Summary is one word on the access, as MongoDB's planSummary.
	Summary() string
	explain(b *bson.Builder, key string, p *Plan)
}

// CollScan looks at every document, in natural order or backwards.
type CollScan struct{ Backward bool }

// IDHack looks up the one document with the given _id.
type IDHack struct{ ID bson.Value }

// Nothing gives no document: the query contradicts itself.
type Nothing struct{}

// IndexScan walks spans of an index and fetches the document behind each key, each document once.
type IndexScan struct {
	Index Index
	// Bounds has the values that each field is held to, for printing; Ranges are the keys to walk, in the index's order.
	Bounds   []Intervals
	Ranges   []Range
	Backward bool
}

// Summary implements Access.
func (*CollScan) Summary() string { return "COLLSCAN" }

// Summary implements Access.
func (*IDHack) Summary() string { return "IDHACK" }

// Summary implements Access.
func (*Nothing) Summary() string { return "EOF" }

// Summary implements Access.
func (s *IndexScan) Summary() string { return "IXSCAN " + s.Index.Key.String() }

// Explain appends the plan to b under key as explain shows a winning plan.
func (p *Plan) Explain(b *bson.Builder, key string) { p.Access.explain(b, key, p) }

// ExplainConsidered appends the accesses that lost as an array.
func (p *Plan) ExplainConsidered(b *bson.Builder, key string) {
	b.Array(key)
	for i, a := range p.Considered {
		a.explain(b, bson.IndexKey(i), p)
	}
	b.End()
}

func (p *Plan) explainFilter(b *bson.Builder) {
	if p.Filter != nil && !p.Filter.Source.IsEmpty() {
		b.Document("filter", p.Filter.Print())
	}
}

func direction(backward bool) string {
	if backward {
		return "backward"
	}
	return "forward"
}

func (s *CollScan) explain(b *bson.Builder, key string, p *Plan) {
	b.Object(key).Bool("isCached", false).String("stage", "COLLSCAN")
	p.explainFilter(b)
	b.String("direction", direction(s.Backward)).End()
}

func (s *IDHack) explain(b *bson.Builder, key string, p *Plan) {
	b.Object(key).Bool("isCached", false).String("stage", "IDHACK").End()
}

func (*Nothing) explain(b *bson.Builder, key string, p *Plan) {
	b.Object(key).Bool("isCached", false).String("stage", "EOF").End()
}

func (s *IndexScan) explain(b *bson.Builder, key string, p *Plan) {
	b.Object(key).Bool("isCached", false).String("stage", "FETCH")
	p.explainFilter(b)
	b.Object("inputStage").String("stage", "IXSCAN")
	s.Describe(b)
	b.End().End()
}

// Describe appends what explain says of the IXSCAN stage besides its name.
func (s *IndexScan) Describe(b *bson.Builder) {
	x := s.Index
	b.Document("keyPattern", x.Key).String("indexName", x.Name)
	if x.Collation != nil {
		b.Document("collation", x.Collation)
	}
	b.Bool("isMultiKey", x.IsMultikey()).Object("multiKeyPaths")
	for i, f := range x.Fields {
		b.Strings(f.Path, multikeyPrefixes(f.Parts, x.multikey(i)))
	}
	b.End().Bool("isUnique", x.Unique).Bool("isSparse", x.Sparse).Bool("isPartial", x.PartialFilter != nil).
		Int32("indexVersion", 2).String("direction", direction(s.Backward)).Object("indexBounds")
	for i, f := range x.Fields {
		b.Array(f.Path)
		for j, text := range boundTexts(s.Bounds[i], f.Descending != s.Backward) {
			b.String(bson.IndexKey(j), text)
		}
		b.End()
	}
	b.End()
}

func (x Index) multikey(field int) uint64 {
	if field < len(x.Multikey) {
		return x.Multikey[field]
	}
	return 0
}

func multikeyPrefixes(parts []string, bits uint64) []string {
	var out []string
	for i := range parts {
		if bits>>min(i, 63)&1 == 1 {
			out = append(out, strings.Join(parts[:i+1], "."))
		}
	}
	return out
}

// boundTexts prints intervals in the direction in which they are walked.
func boundTexts(s Intervals, down bool) []string {
	out := make([]string, len(s))
	for i := range s {
		j := s[i]
		if down {
			j = s[len(s)-1-i]
			j = Interval{j.High, j.Low, j.HighInclusive, j.LowInclusive}
		}
		out[i] = j.String()
	}
	return out
}
