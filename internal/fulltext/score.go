package fulltext

import (
	"fmt"
	"math"
	"math/bits"
	"unicode/utf8"

	"github.com/ebbdb/ebb/internal/bson"
	"github.com/ebbdb/ebb/internal/fulltext/mapping"
)

// evidence is what an operator has found in a document and its score is computed of, when all documents have been seen. The evidence of a
// document is in the order in which scores are computed, so that each operator finds its own at the front.
type evidence struct {
	slot, item   int32
	freq, length float32
}

// cursor goes through evidence.
type cursor struct {
	rest    []evidence
	explain bool
}

// next is the next piece of evidence where that is a slot's.
func (c *cursor) next(slot int32) (e evidence, ok bool) {
	if len(c.rest) == 0 || c.rest[0].slot != slot {
		return e, false
	}
	e, c.rest = c.rest[0], c.rest[1:]
	return e, true
}

// detail explains a score. It is nil where nobody asks.
type detail struct {
	value       float64
	description string
	parts       []*detail
}

// detail is one, of what it is made of.
func (c *cursor) detail(value float64, parts []*detail, format string, args ...any) *detail {
	if !c.explain {
		return nil
	}
	return &detail{value, fmt.Sprintf(format, args...), parts}
}

// doc is the detail as {$meta: "scoreDetails"} shows it.
func (d *detail) doc() bson.Doc {
	b := bson.Build().Double("value", single(d.value)).String("description", d.description).Array("details")
	for i, p := range d.parts {
		b.Document(bson.IndexKey(i), p.doc())
	}
	return b.End().Doc()
}

// single is a number in the precision that scores have.
func single(f float64) float64 { return float64(float32(f)) }

// The parameters of BM25, as Lucene has them.
const (
	saturation = 1.2
	lengthNorm = 0.75
)

// relevance is the score of a term, or of several that stand together, in a field.
func (c *cursor) relevance(f *textField, name string, terms []*term, e evidence, boost float64) (float64, *detail) {
	switch f.def.Similarity {
	case mapping.BooleanSimilarity:
		return boost, c.detail(boost, nil, "%s [BooleanSimilarity]", name)
	case mapping.StableTfl:
		return c.stableTfl(name, terms, e, boost)
	}
	total := max(f.documents, 1)
	idf := 0.0
	if len(terms) == 0 {
		idf = 1 // of patterns, which are as rare as any
	}
	var idfs []*detail
	for _, t := range terms {
		n := max(t.documents, 1)
		one := math.Log(1 + (float64(max(total, n)-n)+0.5)/(float64(n)+0.5))
		idf += one
		idfs = append(idfs, c.detail(one, []*detail{
			c.detail(float64(n), nil, "n, number of documents containing term"),
			c.detail(float64(total), nil, "N, total number of documents with field"),
		}, "idf, computed as log(1 + (N - n + 0.5) / (n + 0.5)) from:"))
	}
	freq, dl := float64(e.freq), float64(lossy(int(e.length)))
	if f.def.NoFrequencies {
		freq = 1
	}
	if f.def.NoNorms {
		dl = 1
	}
	average := max(float64(f.lengths)/float64(total), 1)
	inverse := 1 / (saturation * (1 - lengthNorm + lengthNorm*dl/average))
	weight := boost * idf
	tf := 1 - 1/(1+freq*inverse)
	score := single(weight * tf)
	if !c.explain {
		return score, nil
	}
	var parts []*detail
	if boost != 1 {
		parts = append(parts, c.detail(boost, nil, "boost"))
	}
	if len(idfs) == 1 {
		parts = append(parts, idfs[0])
	} else {
		parts = append(parts, c.detail(idf, idfs, "idf, sum of:"))
	}
	parts = append(parts, c.detail(tf, []*detail{
		c.detail(freq, nil, "freq, occurrences of term within document"),
		c.detail(saturation, nil, "k1, term saturation parameter"),
		c.detail(lengthNorm, nil, "b, length normalization parameter"),
		c.detail(dl, nil, "dl, length of field"),
		c.detail(average, nil, "avgdl, average length of field"),
	}, "tf, computed as freq / (freq + k1 * (1 - b + b * dl / avgdl)) from:"))
	inner := c.detail(score, parts, "score(freq=%.1f), computed as boost * idf * tf from:", freq)
	return score, c.detail(score, []*detail{inner}, "%s [BM25Similarity], result of:", name)
}

// The parameters of the similarity that looks at no other documents.
const (
	commonTerm = 0.00781
	rarer      = 0.917 // how much rarer a term is by each character
	smoothing  = 0.05
)

// stableTfl scores by how often a term is there, how long it is and how long the field is: long words are rare.
func (c *cursor) stableTfl(name string, terms []*term, e evidence, boost float64) (float64, *detail) {
	dl, freq, rarity := float64(lossy(int(e.length))), float64(e.freq), 0.0
	for _, t := range terms {
		p := 1 - math.Pow(1-commonTerm*math.Pow(2, -rarer*float64(utf8.RuneCountInString(t.text))), dl)
		rarity += math.Log(1 + (1-p+smoothing)/(p+smoothing))
	}
	tf := freq / (freq + saturation)
	score := single(boost * rarity * tf)
	return score, c.detail(score, []*detail{
		c.detail(rarity, nil, "tr, rarity of term by its length and that of the field"),
		c.detail(tf, nil, "tf, computed as freq / (freq + k1)"),
	}, "%s [StableTflSimilarity], computed as boost * tr * tf from:", name)
}

// Lengths of fields are kept in one byte by Lucene: small ones as they are, others with four significant bits.
const (
	exactLengths = 24
	lengthBits   = 3
)

// lossy is a length as it comes out of that byte.
func lossy(n int) int {
	if n < exactLengths {
		return max(n, 0)
	}
	rest := uint(n - exactLengths)
	if width := bits.Len(rest); width > lengthBits+1 {
		shift := width - lengthBits - 1
		rest = rest >> shift << shift
	}
	return exactLengths + int(rest)
}

// all adds the scores of a slot's pieces of evidence; ok is false where there is none.
func (c *cursor) all(slot int32, one func(e evidence) (float64, *detail)) (total float64, d *detail, ok bool) {
	var parts []*detail
	for e, more := c.next(slot); more; e, more = c.next(slot) {
		score, d := one(e)
		total, parts, ok = total+score, append(parts, d), true
	}
	total, d = c.sum(total, parts)
	return total, d, ok
}

// ofTerm is the score of a term.
func (c *cursor) ofTerm(t *term, e evidence, boost float64) (float64, *detail) {
	return c.relevance(t.field, t.field.name+":"+t.text, []*term{t}, e, boost)
}

// sum adds scores as Lucene does, and explains that.
func (c *cursor) sum(scores float64, parts []*detail) (float64, *detail) {
	if len(parts) == 1 {
		return scores, parts[0]
	}
	return scores, c.detail(scores, parts, "sum of:")
}
