package fulltext

import (
	"cmp"
	"math"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/clipperhouse/uax29/v2/sentences"

	"github.com/ebbdb/ebb/internal/bson"
	"github.com/ebbdb/ebb/internal/fieldpath"
	"github.com/ebbdb/ebb/internal/fulltext/spec"
)

// highlight is the option of that name: which fields show where words were found.
type highlight struct {
	paths              []stringPath
	passages, examined int
	fields             []*textField
	wild               []func(path string) bool
}

func readHighlight(a *spec.Reader) *highlight {
	sub := a.Inner("highlight")
	if sub == nil {
		return nil
	}
	h := &highlight{paths: readPaths(sub, "path"), passages: sub.Positive("maxNumPassages", 5), examined: sub.Positive("maxCharsToExamine", 500_000)}
	sub.Done()
	return h
}

// resolve finds the fields in an index.
func (h *highlight) resolve(r *resolver) error {
	for _, p := range h.paths {
		if p.wildcard != "" {
			re, err := compile(strings.ReplaceAll(glob(strings.ReplaceAll(p.wildcard, `\`, `\\`)), "?", "[?]"))
			if err != nil {
				return err
			}
			h.wild = append(h.wild, re.MatchString)
			continue
		}
		f, err := r.named(p)
		if err != nil {
			return err
		}
		if f == nil {
			return spec.Wrong(`Highlights cannot be generated. Path: "%s" is not stored statically or dynamically indexed.`, p.value)
		}
		if !slices.Contains(h.fields, f) {
			h.fields = append(h.fields, f)
		}
	}
	return nil
}

// of are the passages of a document's fields in which node finds something.
func (h *highlight) of(s *Search, doc bson.Doc) bson.Value {
	b := bson.Build().Array("")
	n := 0
	for _, f := range h.shown(s) {
		for _, p := range h.passagesOf(s, f, doc) {
			b.Object(bson.IndexKey(n)).Double("score", single(p.score)).String("path", f.path).Array("texts")
			for i, t := range p.texts {
				kind := "text"
				if t.hit {
					kind = "hit"
				}
				b.Object(bson.IndexKey(i)).String("value", t.text).String("type", kind).End()
			}
			b.End().End()
			n++
		}
	}
	return b.End().Doc().Lookup("")
}

// shown are the fields of the option, with those that its patterns find among the ones that were searched.
func (h *highlight) shown(s *Search) []*textField {
	fields := slices.Clone(h.fields)
	for _, f := range s.scope.texts {
		if f.grams != nil || f.multi != "" || slices.Contains(fields, f) {
			continue
		}
		for _, matches := range h.wild {
			if matches(f.path) {
				fields = append(fields, f)
				break
			}
		}
	}
	slices.SortStableFunc(fields[min(len(h.fields), len(fields)):], func(a, b *textField) int { return cmp.Compare(a.path, b.path) })
	return fields
}

// passage is a part of a text with what was found in it.
type passage struct {
	at    int
	score float64
	texts []passageText
}

type passageText struct {
	text string
	hit  bool
}

// passagesOf are the best passages of a field.
func (h *highlight) passagesOf(s *Search, f *textField, doc bson.Doc) []passage {
	var found []passage
	order := 0
	f.at.Values(doc, fieldpath.Names, func(v bson.Value) {
		if v.Type != bson.TypeString {
			return
		}
		found = append(found, h.passagesIn(s, f, cut(v.Str(), h.examined), order)...)
		order += len(v.Str()) + 1
	})
	slices.SortStableFunc(found, func(a, b passage) int { return cmp.Compare(b.score, a.score) })
	found = found[:min(len(found), h.passages)]
	slices.SortStableFunc(found, func(a, b passage) int { return cmp.Compare(a.at, b.at) })
	return found
}

// cut is the beginning of a text of so many characters.
func cut(text string, characters int) string {
	if len(text) <= characters {
		return text
	}
	n := 0
	for i := range text {
		if n++; n > characters {
			return text[:i]
		}
	}
	return text
}

// passagesIn are the sentences of a text in which something was found.
func (h *highlight) passagesIn(s *Search, f *textField, text string, order int) (found []passage) {
	s.load(f, text)
	hits := make([]bool, len(f.tokens))
	any := false
	s.node.mark(f, func(i int) { hits[i], any = true, true })
	if !any {
		return nil
	}
	start := 0
	for it := sentences.FromString(text); it.Next(); {
		end := start + len(it.Value())
		if p, ok := passageOf(f, hits, text, start, end); ok {
			p.at = order + start
			found = append(found, p)
		}
		start = end
	}
	return found
}

// The parameters by which passages are scored, as Lucene has them: how long one is that is neither long nor short.
const passagePivot = 87

// passageOf is the sentence between two places, where it has a hit.
func passageOf(f *textField, hits []bool, text string, start, end int) (p passage, ok bool) {
	freq, total := map[string]int{}, map[string]int{}
	at := start
	for i, hit := range hits {
		t := &f.tokens[i]
		if !hit {
			continue
		}
		total[t.Term]++
		if t.Start < at || t.End > end {
			continue
		}
		freq[t.Term]++
		if t.Start > at {
			p.texts = append(p.texts, passageText{text[at:t.Start], false})
		}
		p.texts = append(p.texts, passageText{text[t.Start:t.End], true})
		at = t.End
	}
	if len(freq) == 0 {
		return p, false
	}
	if at < end {
		p.texts = append(p.texts, passageText{text[at:end], false})
	}
	size := float64(utf8.RuneCountInString(text[start:end]))
	parts := 1 + float64(utf8.RuneCountInString(text))/passagePivot
	for term, n := range freq {
		weight := (saturation + 1) * math.Log(1+(parts+0.5)/(float64(total[term])+0.5))
		norm := saturation * (1 - lengthNorm + lengthNorm*size/passagePivot)
		p.score += weight * float64(n) / (float64(n) + norm)
	}
	p.score *= 1 + 1/math.Log(passagePivot+float64(start))
	return p, true
}
