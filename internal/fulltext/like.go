package fulltext

import (
	"cmp"
	"math"
	"slices"
	"strings"

	"github.com/ebbdb/ebb/internal/bson"
	"github.com/ebbdb/ebb/internal/fulltext/spec"
)

// moreLikeThis finds documents with the words of others.
type moreLikeThis struct {
	texts []likeText
}

type likeText struct{ path, text string }

func parseMoreLikeThis(p *parser, a *spec.Reader) operator {
	m := &moreLikeThis{}
	for _, e := range a.RequiredList("like", true) {
		m.read(a.Inside(e.Path, e.Value).Doc(), "")
	}
	return m
}

// maxLikeTexts bounds the strings of the documents that are searched by.
const maxLikeTexts = 1 << 14

func (m *moreLikeThis) read(doc bson.Doc, prefix string) {
	for it := doc.Iter(); it.Next(); {
		m.value(it.Value(), prefix+it.Key())
	}
}

func (m *moreLikeThis) value(v bson.Value, path string) {
	switch v.Type {
	case bson.TypeString:
		if len(m.texts) < maxLikeTexts {
			m.texts = append(m.texts, likeText{strings.Clone(path), strings.Clone(v.Str())})
		}
	case bson.TypeObject:
		m.read(v.Doc(), path+".")
	case bson.TypeArray:
		for it := v.Doc().Iter(); it.Next(); {
			m.value(it.Value(), path)
		}
	}
}

const (
	// minLikeDocuments is how many documents have a word that is searched for: one that a single document has finds no other.
	minLikeDocuments = 2
	// maxLikeTokens is how many tokens of a text are looked at, as in Lucene, and maxLikeWords how many words there are of all texts.
	maxLikeTokens = 5000
	maxLikeWords  = 1 << 16
	// maxLikeTerms is how many words are searched for, those that say the most.
	maxLikeTerms = 25
)

func (m *moreLikeThis) resolve(r *resolver) (node, error) {
	r.twice = true
	n := &like{slot: r.slot(), times: map[*term]int{}}
	for _, t := range m.texts {
		field := r.scope.field(t.path)
		if field == nil || field.String == nil {
			continue
		}
		names := []string{""}
		for name := range field.String.Multi {
			names = append(names, name)
		}
		slices.Sort(names)
		for _, multi := range names {
			f := r.text(t.path, multi)
			if f == nil || len(t.text) > maxQueryBytes {
				continue
			}
			for i, tok := range f.def.SearchAnalyzer.Tokens(nil, t.text) {
				if i == maxLikeTokens || len(n.times) == maxLikeWords {
					break
				}
				n.times[f.term(strings.Clone(tok.Term))]++
			}
		}
	}
	return n, nil
}

// like finds documents with the words that say the most of those it was given. Which those are is known when all documents have been seen.
type like struct {
	leaf
	slot  int32
	times map[*term]int
	terms []*term // nil: not chosen yet
}

// choose takes the words that are the most and in the fewest documents.
func (n *like) choose() {
	n.terms = []*term{}
	weight := map[*term]float64{}
	for t, times := range n.times {
		if t.documents >= minLikeDocuments {
			weight[t] = float64(times) * (1 + math.Log(float64(t.field.documents+1)/float64(t.documents+1)))
			n.terms = append(n.terms, t)
		}
	}
	slices.SortFunc(n.terms, func(a, b *term) int {
		return cmp.Or(cmp.Compare(weight[b], weight[a]), cmp.Compare(a.field.name, b.field.name), cmp.Compare(a.text, b.text))
	})
	n.terms = n.terms[:min(len(n.terms), maxLikeTerms)]
}

func (n *like) find(ev []evidence) ([]evidence, bool) {
	if n.terms == nil {
		n.choose()
	}
	found := false
	for i, t := range n.terms {
		if t.in() {
			ev, found = append(ev, evidence{n.slot, int32(i), float32(t.freq), float32(t.field.length)}), true
		}
	}
	return ev, found
}

func (n *like) score(c *cursor) (float64, *detail, bool) {
	return c.all(n.slot, func(e evidence) (float64, *detail) { return c.ofTerm(n.terms[e.item], e, 1) })
}

func (n *like) mark(f *textField, mark func(int)) {
	for i := range f.tokens {
		if t := f.terms[f.tokens[i].Term]; t != nil && slices.Contains(n.terms, t) {
			mark(i)
		}
	}
}
