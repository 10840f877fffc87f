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
// fields multiply out, the first field that has wider intervals ends the spans. What bounds fields from there on is checked
// key by key: behind has, for fields from the from-th on, the spans that their part of a key must lie in, nil for any.
func ranges(x Index, bounds []Intervals) (out []Range, from int, behind [][]Range) {
	for _, b := range bounds {
		if len(b) == 0 {
			return nil, 0, nil
		}
	}
	prefixes := [][]byte{nil}
	i := 0
	for ; i < len(bounds); i++ {
		b := bounds[i]
		if b.IsAll() || !b.ArePoints() || len(prefixes)*len(b) > maxRanges {
			break
		}
		var longer [][]byte
		for _, p := range prefixes {
			for j := range b {
				longer = append(longer, x.AppendKey(clip(p), i, at(b, j, x.Fields[i].Descending).Low))
			}
		}
		prefixes = longer
	}
	if i < len(bounds) && !bounds[i].IsAll() {
		out, whole := spans(x, i, prefixes, bounds[i])
		if whole {
			i++
		}
		return out, i, checks(x, i, bounds)
	}
	out = make([]Range, len(prefixes))
	for i, p := range prefixes {
		out[i] = Range{p, successor(p)}
	}
	return out, i, checks(x, i, bounds)
}

// checks are the spans of the fields from the i-th on, none when nothing bounds them.
func checks(x Index, from int, bounds []Intervals) (out [][]Range) {
	bound := false
	for i := from; i < len(bounds); i++ {
		var spans []Range
		if !bounds[i].IsAll() {
			bound = true
			spans = make([]Range, 0, len(bounds[i]))
			for j := range bounds[i] {
				spans = append(spans, span(x, i, nil, at(bounds[i], j, x.Fields[i].Descending)))
			}
		}
		out = append(out, spans)
	}
	if !bound {
		return nil
	}
	return out
}

// spans are those of one field behind each prefix; whole is false when there are too many and they are wider than b.
func spans(x Index, field int, prefixes [][]byte, b Intervals) (out []Range, whole bool) {
	desc := x.Fields[field].Descending
	whole = len(prefixes)*len(b) <= maxRanges
	if !whole {
		b = Intervals{{b[0].Low, b[len(b)-1].High, b[0].LowInclusive, b[len(b)-1].HighInclusive}}
	}
	out = make([]Range, 0, len(prefixes)*len(b))
	for _, p := range prefixes {
		for j := range b {
			out = append(out, span(x, field, p, at(b, j, desc)))
		}
	}
	return out, whole
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
