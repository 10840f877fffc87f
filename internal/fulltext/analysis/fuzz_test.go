package analysis

import (
	"strings"
	"testing"
	"unicode/utf8"
)

// several are definitions that have all kinds of steps.
var several = []string{
	`charFilters: [{type: "htmlStrip"}, {type: "mapping", mappings: {"a": "", "bb": "x", "c": "yyyy"}}], tokenizer: {type: "standard"}`,
	`charFilters: [{type: "icuNormalize"}, {type: "persian"}], tokenizer: {type: "uaxUrlEmail"}, tokenFilters: [{type: "icuFolding"}]`,
	`tokenizer: {type: "nGram", minGram: 1, maxGram: 3}, tokenFilters: [{type: "shingle", minShingleSize: 2, maxShingleSize: 3}]`,
	`tokenizer: {type: "whitespace"}, tokenFilters: [{type: "wordDelimiterGraph", delimiterOptions: {concatenateAll: true, preserveOriginal: true}},
		{type: "asciiFolding", originalTokens: "include"}, {type: "removeDuplicates"}, {type: "trim"}]`,
	`tokenizer: {type: "regexSplit", pattern: "\\W+"}, tokenFilters: [{type: "keywordRepeat"}, {type: "regex", pattern: "(.)b?", replacement: "$1-", matches: "all"}]`,
	`tokenizer: {type: "edgeGram", minGram: 0, maxGram: 9}, tokenFilters: [{type: "nGram", minGram: 0, maxGram: 2, termNotInBounds: "include"}, {type: "reverse"}]`,
}

// FuzzTokens holds the tokens of any text to what others build on: they lie in the text, at the bounds of characters, in the order of positions.
func FuzzTokens(f *testing.F) {
	for _, seed := range []string{
		"", "The quick, brown fox's", "日本語のテキスト ﬁne straße", "\ufeffa\u200db \u0301", "\xff\xfe a\xc3", "<p>a&amp;b</p><!-- x", "a@b.co https://x.y/z 3.14",
		"👩\u200d👩\u200d👧🇩🇪🇫🇷#\ufe0f\u20e3", "สวัสดี ครับ ١٢٣", strings.Repeat("ab", 300), strings.Repeat("é", 260), "Wi-Fi PowerShot500 O'Neil's", "x\u0300\u0301\u0302y",
	} {
		f.Add(seed)
	}
	var all []*Analyzer
	for _, a := range stock() {
		all = append(all, a)
	}
	for _, definition := range several {
		a, err := custom(definition)
		if err != nil {
			f.Fatal(err)
		}
		all = append(all, a)
	}
	f.Fuzz(func(t *testing.T, text string) {
		for _, a := range all {
			check(t, a.name, text, a.Tokens([]Token{{Term: "before"}}, text)[1:])
			a.Normalize(text)
			for grams := EdgeGrams; grams <= AllGrams; grams++ {
				c := Autocomplete{Base: a, Grams: grams, Min: 2, Max: 4, Fold: true}
				check(t, "autocomplete of "+a.name, text, c.Tokens(nil, text))
				c.QueryTokens([]string{text}, false)
			}
		}
	})
}

func check(t *testing.T, name, text string, tokens []Token) {
	t.Helper()
	position := 0
	for _, tok := range tokens {
		switch {
		case tok.Start < 0 || tok.Start > tok.End || tok.End > len(text):
			t.Fatalf("%s of %q: the token %q is from %d to %d", name, text, tok.Term, tok.Start, tok.End)
		case tok.Position < position:
			t.Fatalf("%s of %q: the token %q is at the position %d, behind one at %d", name, text, tok.Term, tok.Position, position)
		case utf8.ValidString(text) && !utf8.ValidString(tok.Term):
			t.Fatalf("%s of %q: the token %q is no text", name, text, tok.Term)
		case utf8.ValidString(text) && !utf8.ValidString(text[tok.Start:tok.End]):
			t.Fatalf("%s of %q: the token %q has half a character of the text, from %d to %d", name, text, tok.Term, tok.Start, tok.End)
		}
		position = tok.Position
	}
}
