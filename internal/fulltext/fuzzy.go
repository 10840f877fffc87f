package fulltext

import (
	"cmp"
	"math"
	"math/bits"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/ebbdb/ebb/internal/fulltext/spec"
)

// fuzziness is how far a term may be from the one that is asked for.
type fuzziness struct {
	maxEdits, prefixLength, maxExpansions int
}

// readFuzziness reads the field "fuzzy", nil where there is none.
func readFuzziness(a *spec.Reader, leastEdits, expansions int) *fuzziness {
	sub := a.Inner("fuzzy")
	if sub == nil {
		return nil
	}
	f := &fuzziness{maxEdits: sub.IntWithin("maxEdits", math.MinInt32, math.MaxInt32, 2), prefixLength: sub.Count("prefixLength", 0), maxExpansions: sub.IntWithin("maxExpansions", 1, maxExpansions, expansions)}
	if f.maxEdits < leastEdits || f.maxEdits > 2 {
		if leastEdits == 0 {
			sub.RefuseField("maxEdits", "must be within bounds [0, 2]")
		}
		sub.RefuseField("maxEdits", "must be either 1 or 2")
	}
	sub.Done()
	return f
}

const (
	maxExpansions = 1000
	// maxVariants bounds the terms that are remembered as near enough to one, and maxVariantBytes how long they are together. Beyond that, further
	// ones are not found.
	maxVariants     = 1 << 16
	maxVariantBytes = 4 << 20
)

// pattern is a term of which others may be variants.
type pattern struct {
	runes    []rune
	prefix   string
	maxEdits int
	// terms are the variants that the view that is loaded has, and others that it has not: those that any had.
	terms []*term
	// kept are those that count, with how near each is, when all have been seen.
	kept map[*term]float64

	placed bool // places are asked for
	// most is how many documents the most common one is in: all count as being as common, so that a rare mistake is not above what is right.
	most    int64
	bytes   int
	letters uint64
	other   []rune
	rows    [3][]int
}

// takes says whether a term of the collection is a variant.
func (p *pattern) takes(text string) bool {
	return len(p.terms) < maxVariants && p.bytes < maxVariantBytes && strings.HasPrefix(text, p.prefix) && p.mayBe(text) && p.distance(text) <= p.maxEdits
}

// mayBe is false of terms that have too many characters that the pattern has not, or lack too many that it has, which most do.
func (p *pattern) mayBe(text string) bool {
	if p.letters == 0 {
		for _, c := range p.runes {
			p.letters |= letter(c)
		}
	}
	n, others := 0, uint64(0)
	for _, c := range text {
		n++
		others |= letter(c)
	}
	apart := n - len(p.runes)
	return apart <= p.maxEdits && -apart <= p.maxEdits && bits.OnesCount64(others&^p.letters) <= p.maxEdits && bits.OnesCount64(p.letters&^others) <= p.maxEdits
}

// letter is a bit for a character, which others may share.
func letter(c rune) uint64 { return 1 << (uint(c) & 63) }

// distance is how many characters have to be put in, left out, replaced or swapped with their neighbours to make a term of the pattern, or more
// than it may be.
func (p *pattern) distance(text string) int {
	a, limit := p.runes, p.maxEdits
	p.other = p.other[:0]
	for _, c := range text {
		p.other = append(p.other, c)
	}
	b := p.other
	n := len(b)
	if n-len(a) > limit || len(a)-n > limit {
		return limit + 1
	}
	for i := range p.rows {
		p.rows[i] = slices.Grow(p.rows[i][:0], n+1)[:n+1]
	}
	before, last, row := p.rows[0], p.rows[1], p.rows[2]
	for j := range last {
		last[j] = j
	}
	for i := 1; i <= len(a); i++ {
		// what is further from the diagonal than the limit is too far
		from, to := max(i-limit, 1), min(i+limit, n)
		row[from-1] = limit + 1
		if from == 1 {
			row[0] = i
		}
		if to < n {
			row[to+1] = limit + 1
		}
		least := row[from-1]
		for j := from; j <= to; j++ {
			cost := 1
			if a[i-1] == b[j-1] {
				cost = 0
			}
			row[j] = min(last[j]+1, row[j-1]+1, last[j-1]+cost)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				row[j] = min(row[j], before[j-2]+1)
			}
			least = min(least, row[j])
		}
		if least > limit {
			return limit + 1
		}
		before, last, row = last, row, before
	}
	return last[n]
}

// variants finds documents with a term that is near the one that is asked for.
type variants struct {
	leaf
	slot    int32
	field   *textField
	pattern *pattern
	limit   int
	items   map[*term]int32
	of      []*term // as their scores are computed
	near    []float64
}

// fuzzy is the node of a term and its variants.
func (r *resolver) fuzzy(f *textField, text string, how *fuzziness) (node, error) {
	if err := r.clause(); err != nil {
		return nil, err
	}
	r.twice = true
	runes := []rune(text)
	p := &pattern{runes: runes, prefix: string(runes[:min(how.prefixLength, len(runes))]), maxEdits: how.maxEdits}
	if how.prefixLength >= len(runes) {
		p.maxEdits = 0
	}
	f.tests = append(f.tests, p)
	return &variants{slot: r.slot(), field: f, pattern: p, limit: how.maxExpansions, items: map[*term]int32{}}, nil
}

// settle keeps the variants that are nearest, when all terms have been seen.
func (p *pattern) settle(limit int) {
	p.kept = make(map[*term]float64, len(p.terms))
	for _, t := range p.terms {
		edits := p.distance(t.text)
		p.kept[t] = 1 - float64(edits)/float64(max(min(len(p.runes), utf8.RuneCountInString(t.text)), 1))
	}
	slices.SortFunc(p.terms, func(a, b *term) int {
		return cmp.Or(cmp.Compare(p.kept[b], p.kept[a]), cmp.Compare(a.text, b.text))
	})
	for len(p.terms) > limit {
		delete(p.kept, p.terms[len(p.terms)-1])
		p.terms = p.terms[:len(p.terms)-1]
	}
	for _, t := range p.terms {
		p.most = max(p.most, t.documents)
	}
}

// places are where the view that is loaded has one of the terms.
func (n *variants) places() (all []int) {
	if n.pattern.kept == nil {
		n.pattern.settle(n.limit)
	}
	for _, t := range n.pattern.terms {
		all = append(all, t.places()...)
	}
	slices.Sort(all)
	return all
}

func (n *variants) find(ev []evidence) ([]evidence, bool) {
	if n.pattern.kept == nil {
		n.pattern.settle(n.limit)
	}
	found := false
	for _, t := range n.pattern.terms {
		if !t.in() {
			continue
		}
		item, ok := n.items[t]
		if !ok {
			item = int32(len(n.of))
			n.items[t], n.of = item, append(n.of, &term{field: t.field, text: t.text, documents: n.pattern.most})
			n.near = append(n.near, n.pattern.kept[t])
		}
		ev, found = append(ev, evidence{n.slot, item, float32(t.freq), float32(n.field.length)}), true
	}
	return ev, found
}

func (n *variants) score(c *cursor) (float64, *detail, bool) {
	return c.all(n.slot, func(e evidence) (float64, *detail) { return c.ofTerm(n.of[e.item], e, n.near[e.item]) })
}

func (n *variants) mark(f *textField, mark func(int)) {
	if f != n.field {
		return
	}
	for i := range f.tokens {
		if t := f.terms[f.tokens[i].Term]; t != nil {
			if _, kept := n.pattern.kept[t]; kept {
				mark(i)
			}
		}
	}
}
