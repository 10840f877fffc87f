package planner

import (
	"slices"

	"github.com/ebbdb/ebb/internal/bson"
	"github.com/ebbdb/ebb/internal/keystring"
)

// Range is a span of an index's key strings: from Low on, before High.
type Range struct{ Low, High []byte }

// maxRanges is how many spans a scan is cut into; bounds that make more are widened.
const maxRanges = 10_000

// ranges turns the bounds of each field into spans of key strings, in the index's order: single values of the leading
// fields multiply out, the first field that has wider intervals ends the spans, and what bounds fields behind it is
// left to the filter.
func ranges(x Index, bounds []Intervals) []Range {
	prefixes := [][]byte{nil}
	for i, b := range bounds {
		desc := x.Fields[i].Descending
		if b.IsAll() {
			break
		}
		if !b.ArePoints() || len(prefixes)*len(b) > maxRanges {
			return spans(x, i, prefixes, b)
		}
		var longer [][]byte
		for _, p := range prefixes {
			for j := range b {
				longer = append(longer, x.AppendKey(clip(p), i, at(b, j, desc).Low))
			}
		}
		prefixes = longer
	}
	out := make([]Range, len(prefixes))
	for i, p := range prefixes {
		out[i] = Range{p, successor(p)}
	}
	return out
}

func spans(x Index, field int, prefixes [][]byte, b Intervals) []Range {
	desc := x.Fields[field].Descending
	if len(prefixes)*len(b) > maxRanges {
		b = Intervals{{b[0].Low, b[len(b)-1].High, b[0].LowInclusive, b[len(b)-1].HighInclusive}}
	}
	var out []Range
	for _, p := range prefixes {
		for j := range b {
			out = append(out, span(x, field, p, at(b, j, desc)))
		}
	}
	return out
}

// at is the j-th interval in the order in which the field is stored.
func at(b Intervals, j int, desc bool) Interval {
	if desc {
		return b[len(b)-1-j]
	}
	return b[j]
}

// span relies on key strings being self-delimiting: no value's is the start of another's.
func span(x Index, field int, prefix []byte, i Interval) Range {
	low, lowIn, high, highIn := i.Low, i.LowInclusive, i.High, i.HighInclusive
	if x.Fields[field].Descending {
		low, lowIn, high, highIn = high, highIn, low, lowIn
	}
	r := Range{x.AppendKey(clip(prefix), field, low), x.AppendKey(clip(prefix), field, high)}
	if !lowIn {
		r.Low = successor(r.Low)
	}
	if highIn {
		r.High = successor(r.High)
	}
	return r
}

// clip keeps appends to different children of one prefix apart.
func clip(p []byte) []byte { return p[:len(p):len(p)] }

// successor is the least key above all that start with p; nil stands for no bound.
func successor(p []byte) []byte { return keystring.Successor(slices.Clone(p)) }

// keyRange is the span between the keys min (inclusive) and max (exclusive), each a whole key or absent.
func keyRange(x Index, lowKey, highKey bson.Doc) Range {
	var r Range
	if lowKey != nil {
		r.Low = wholeKey(x, lowKey)
	}
	if highKey != nil {
		r.High = wholeKey(x, highKey)
	}
	return r
}

func wholeKey(x Index, key bson.Doc) []byte {
	var b []byte
	i := 0
	for it := key.Iter(); it.Next() && i < len(x.Fields); i++ {
		b = x.AppendKey(b, i, it.Value())
	}
	return b
}
