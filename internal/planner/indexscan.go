package planner

import (
	"strings"

	"github.com/ebbdb/ebb/internal/bson"
	"github.com/ebbdb/ebb/internal/index"
	"github.com/ebbdb/ebb/internal/match"
)

// IndexScan walks spans of an index and gives the record id behind each key, each once.
type IndexScan struct {
	Index Index
	// Bounds has the values that each field is held to, for printing, if there is something to print; Ranges are the keys to walk, in the index's order.
	Bounds   []Intervals
	Ranges   []Range
	Backward bool
	// Once says that no record has two keys in the spans, even of a multikey index.
	Once bool
	// From and Behind check what Ranges leave open: the From-th field of a key lies in a span of Behind[0], and so on; nil is
	// any. Without Behind there is nothing to check.
	From   int
	Behind [][]Range
	// Filter is what the key itself must match, before anything is fetched. Its paths are fields of the index that are not
	// multikey.
	Filter *match.Filter
}

// Stage implements Node.
func (*IndexScan) Stage() string { return "IXSCAN" }

// Children implements Node.
func (*IndexScan) Children() []Node { return nil }

// Describe implements Node.
func (n *IndexScan) Describe(b *bson.Builder) {
	n.Index.describe(b)
	b.String("direction", direction(n.Backward))
	n.Index.describeBounds(b, n.Bounds, n.Backward)
}

// describe appends what explain says of an index that a node walks.
func (x Index) describe(b *bson.Builder) {
	b.Document("keyPattern", x.Key).String("indexName", x.Name)
	if x.Collation != nil {
		b.Document("collation", x.Collation)
	}
	b.Bool("isMultiKey", x.IsMultikey())
	if x.Kind != index.Text { // whose keys are not the values of paths
		b.Object("multiKeyPaths")
		for i, f := range x.Fields {
			b.Strings(f.Path, multikeyPrefixes(f.Parts, x.multikey(i)))
		}
		b.End()
	}
	b.Bool("isUnique", x.Unique).Bool("isSparse", x.Sparse).Bool("isPartial", x.PartialFilter != nil).Int32("indexVersion", x.Version())
}

func (x Index) describeBounds(b *bson.Builder, bounds []Intervals, backward bool) {
	texts := make([][]string, min(len(x.Fields), len(bounds)))
	size := b.Len()
	for i := range texts {
		texts[i] = boundTexts(bounds[i], x.Fields[i].Descending != backward)
		for _, text := range texts[i] {
			if size += len(text) + boundOverhead; size > ExplainThreshold {
				b.String("warning", "index bounds omitted due to BSON size limit for explain")
				return
			}
		}
	}
	b.Object("indexBounds")
	for i := range texts {
		b.Strings(x.Fields[i].Path, texts[i])
	}
	b.End()
}

const (
	// ExplainThreshold is how large what explain tells may get before it leaves out bounds, filters and stages: MongoDB's
	// internalQueryExplainSizeThresholdBytes.
	ExplainThreshold = 10 << 20
	// boundOverhead is what a bound takes beside its text: type, key and length.
	boundOverhead = 12
)

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
