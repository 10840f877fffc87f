package textsearch

import (
	"fmt"
	"math"
	"runtime"
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"

	"github.com/ebbdb/ebb/internal/bson"
	"github.com/ebbdb/ebb/internal/mongoerr"
)

// TestTextSearch runs the cases of testdata: words parts a text, query reads a search, score weighs the words of documents
// under a spec, and match holds documents against a search.
func TestTextSearch(t *testing.T) {
	datadriven.Walk(t, "testdata", func(t *testing.T, path string) {
		spec := newSpec(bson.MustDoc(`{weights: {a: 1}}`))
		datadriven.RunTest(t, path, func(t *testing.T, td *datadriven.TestData) string {
			l, form := argLanguage(td), argForm(td)
			switch td.Cmd {
			case "words":
				w := words{}
				return eachLine(td.Input, func(line string) string { return strings.Join(w.all(l, line, form), " | ") })
			case "query":
				return eachLine(td.Input, func(line string) string {
					q, err := ParseQuery(line, l, form)
					if err != nil {
						return failure(err)
					}
					return q.Doc().String() + " scans " + strings.Join(q.Terms, " ")
				})
			case "spec":
				spec = newSpec(bson.MustDoc(td.Input))
				return ""
			case "score":
				return eachLine(td.Input, func(line string) string { return scores(spec, bson.MustDoc(line)) })
			case "match":
				search, docs, _ := strings.Cut(td.Input, "\n")
				q, err := ParseQuery(search, spec.Default, form)
				if err != nil {
					return failure(err)
				}
				return eachLine(docs, func(line string) string { return matches(spec, q, bson.MustDoc(line)) })
			}
			return "unknown command " + td.Cmd
		})
	})
}

func newSpec(d bson.Doc) *Spec {
	language, override := "english", "language"
	if v := d.Lookup("default_language"); !v.IsMissing() {
		language = v.Str()
	}
	if v := d.Lookup("language_override"); !v.IsMissing() {
		override = v.Str()
	}
	return NewSpec(d.Lookup("weights").Doc(), Find(language), override)
}

func argLanguage(td *datadriven.TestData) *Language {
	name := "english"
	td.MaybeScanArgs(&testing.T{}, "language", &name)
	return Find(name)
}

func argForm(td *datadriven.TestData) (form Form) {
	for name, f := range map[string]Form{"case": KeepCase, "diacritics": KeepDiacritics, "stop": KeepStopWords} {
		if td.HasArg(name) {
			form |= f
		}
	}
	return form
}

func (w *words) all(l *Language, text string, form Form) (all []string) {
	w.start(l, text, form)
	for word, ok := w.next(); ok; word, ok = w.next() {
		all = append(all, word)
	}
	return all
}

func eachLine(input string, f func(string) string) string {
	var b strings.Builder
	for line := range strings.Lines(input) {
		b.WriteString(f(strings.TrimSuffix(line, "\n")) + "\n")
	}
	return b.String()
}

func failure(err error) string {
	e := mongoerr.From(err)
	return fmt.Sprintf("error %d %s", e.Code, e.Message)
}

func scores(s *Spec, doc bson.Doc) string {
	terms, err := s.Terms(nil, doc, math.MaxInt)
	if err != nil {
		return failure(err)
	}
	var b strings.Builder
	for _, t := range terms {
		fmt.Fprintf(&b, "%s %v  ", t.Word, t.Score)
	}
	return strings.TrimSpace(b.String())
}

func matches(s *Spec, q *Query, doc bson.Doc) string {
	is, err := s.Matches(q, doc)
	if err != nil {
		return failure(err)
	}
	return fmt.Sprint(is)
}

// TestEveryLanguage finds each language by its name and its code, and a word too common to be searched in each.
func TestEveryLanguage(t *testing.T) {
	for code, word := range map[string]string{"da": "og", "nl": "de", "en": "the", "fi": "ja", "fr": "le", "de": "und", "hu": "és", "it": "il",
		"nb": "og", "pt": "não", "ro": "si", "ru": "и", "es": "el", "sv": "och", "tr": "için"} {
		l := Find(strings.ToUpper(code))
		if l == nil || Find(l.Name) != l {
			t.Fatalf("%s is no language, or not that of its name", code)
		}
		w := words{}
		if found := w.all(l, word, 0); len(found) != 0 {
			t.Errorf("%s: %q leaves %q", l.Name, word, found)
		}
		if found := w.all(Find("none"), word, KeepDiacritics); len(found) != 1 || found[0] != word {
			t.Errorf("none: %q leaves %q", word, found)
		}
	}
}

// TestSearchesAreBounded reads searches of many tokens, with memory that grows with their number and not with its square.
func TestSearchesAreBounded(t *testing.T) {
	const tokens = 5000
	const refused = "error 2 $search has more than 8192 words and phrases"
	var distinct strings.Builder
	for i := range MaxTerms + 1 {
		fmt.Fprint(&distinct, "w", i, " ")
	}
	for search, want := range map[string]string{
		strings.Repeat("fox ", tokens):         "ok",
		strings.Repeat(`"fox" `, tokens):       "ok",
		strings.Repeat(`-"fox" `, 10*MaxTerms): refused,
		strings.Repeat(`"`, 10*MaxTerms):       refused,
		distinct.String():                      refused,
		"-" + distinct.String()[:20]:           "ok",
	} {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		_, err := ParseQuery(search, Find("english"), 0)
		runtime.ReadMemStats(&after)
		got := "ok"
		if err != nil {
			got = failure(err)
		}
		if got != want {
			t.Errorf("%.20s…: %s", search, got)
		}
		if n := after.TotalAlloc - before.TotalAlloc; n > 16<<20 {
			t.Errorf("%.20s… took %d bytes", search, n)
		}
	}
}

// TestLargeTextsLeaveNothing: what a document of many words needed is not kept for the next one, which may have ten.
func TestLargeTextsLeaveNothing(t *testing.T) {
	var text strings.Builder
	for i := range 4 * maxKeptWords {
		fmt.Fprintf(&text, "w%d ", i)
	}
	s := NewSpec(bson.MustDoc("{a: 1}"), Find("english"), "language")
	terms, err := s.Terms(nil, bson.Build().String("a", text.String()).Doc(), math.MaxInt)
	if err != nil || len(terms) != 4*maxKeptWords {
		t.Fatal(len(terms), err)
	}
	c := s.scratch.Get().(*scratch)
	if room := cap(c.counts); room > maxKeptWords || len(c.places) > maxKeptWords {
		t.Errorf("the next document finds room for %d words, and %d of the last one", room, len(c.places))
	}
}

// TestTooManyWords: nobody reads on who has found more words than a document may have.
func TestTooManyWords(t *testing.T) {
	const most, words = 10, 1000
	s := NewSpec(bson.MustDoc("{a: 1, b: 1}"), Find("english"), "language")
	var text strings.Builder
	for i := range words {
		fmt.Fprintf(&text, "w%d ", i)
	}
	doc := bson.Build().String("a", text.String()).String("b", text.String()).Doc()
	for limit, want := range map[int]int{most: most + 1, words: words} {
		if terms, err := s.Terms(nil, doc, limit); err != nil || len(terms) != want {
			t.Errorf("%d terms of at most %d, not %d: %v", len(terms), limit, want, err)
		}
	}
}
