package textsearch

import (
	"math"
	"slices"
	"testing"
	"unicode/utf8"

	"github.com/ebbdb/ebb/internal/bson"
)

// FuzzWords parts any text in any language: the words are in order of the text, none is empty or invalid, and a document of
// the text is found by each of them.
func FuzzWords(f *testing.F) {
	for _, text := range []string{"The running dog's", "café CAFÉ ﬁne", "数据库系统 、。", "IŞIK İstanbul", "слонов", "a\x00b'c^`d", "''", "x'"} {
		for i := range uint8(16) {
			f.Add(text, i)
		}
	}
	var all []*Language
	for _, l := range languages() {
		if !slices.Contains(all, l) {
			all = append(all, l)
		}
	}
	f.Fuzz(func(t *testing.T, text string, which uint8) {
		l := all[int(which)%len(all)]
		for form := range Form(8) {
			w := words{}
			for _, word := range w.all(l, text, form) {
				if !utf8.ValidString(word) && utf8.ValidString(text) {
					t.Fatalf("%s: %q has the word %q", l.Name, text, word)
				}
			}
		}
		findsItself(t, l, text)
	})
}

func findsItself(t *testing.T, l *Language, text string) {
	s := NewSpec(bson.Build().Int32("a", 1).Doc(), l, "language")
	doc := bson.Build().String("a", text).Doc()
	terms, err := s.Terms(nil, doc, math.MaxInt)
	if err != nil {
		if utf8.ValidString(text) {
			t.Fatal(err)
		}
		return
	}
	q, err := ParseQuery(text, l, 0)
	if err != nil {
		return
	}
	for i, term := range terms {
		if i > 0 && terms[i-1].Word >= term.Word || term.Score <= 0 || term.Score > MaxScore {
			t.Fatalf("%s: %q has the terms %v", l.Name, text, terms)
		}
		q.Terms, q.Positive, q.Negated, q.Phrases, q.NegatedPhrases = []string{term.Word}, nil, nil, nil, nil
		if found, err := s.Finds(q, doc); !found || err != nil {
			t.Fatalf("%s: %q is not found by %q: %v", l.Name, text, term.Word, err)
		}
	}
}

// FuzzQuery reads anything as a search: its words are in order, and each once.
func FuzzQuery(f *testing.F) {
	for _, search := range []string{`coffee "a b" -tea -"c d"`, `-"`, `"-`, `a-b -c-d`, "\"a\nb\" - \v\f\r-x", `""""`} {
		f.Add(search, uint8(0))
		f.Add(search, uint8(3))
	}
	doc := bson.MustDoc(`{a: "Coffee and café"}`)
	f.Fuzz(func(t *testing.T, search string, form uint8) {
		l := Find("english")
		q, err := ParseQuery(search, l, Form(form))
		if err != nil {
			return
		}
		for _, set := range [][]string{q.Terms, q.Positive, q.Negated} {
			if !slices.IsSorted(set) || len(slices.Compact(slices.Clone(set))) != len(set) {
				t.Fatalf("%q: %q", search, set)
			}
		}
		s := NewSpec(bson.MustDoc(`{a: 1}`), l, "language")
		if _, err := s.Finds(q, doc); err != nil {
			t.Fatal(err)
		}
		q.Doc()
	})
}
