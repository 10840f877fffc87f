package analysis

import (
	"strings"
	"testing"
)

var prose = strings.Repeat("It was the best of times, it was the worst of times; it was the Age of Wisdom, 1789's age of foolishness. ", 100)

func BenchmarkTokens(b *testing.B) {
	for _, c := range []struct{ name, text string }{
		{"standard", prose}, {"standard", strings.ReplaceAll(prose, "o", "ö")}, {"english", prose}, {"simple", prose}, {"french", prose}, {"cjk", strings.Repeat("日本語のテキスト。", 500)},
	} {
		a, err := Stock("lucene." + c.name)
		if err != nil {
			b.Fatal(err)
		}
		b.Run(c.name, func(b *testing.B) {
			b.SetBytes(int64(len(c.text)))
			b.ReportAllocs()
			var tokens []Token
			for b.Loop() {
				tokens = a.Tokens(tokens[:0], c.text)
			}
		})
	}
}

func BenchmarkAutocomplete(b *testing.B) {
	base, _ := Stock(Standard)
	for _, grams := range []Grams{EdgeGrams, AllGrams} {
		a := Autocomplete{Base: base, Grams: grams, Min: 2, Max: 15, Fold: true}
		b.Run([]string{"edge", "right", "all"}[grams], func(b *testing.B) {
			b.SetBytes(int64(len(prose)))
			b.ReportAllocs()
			for b.Loop() {
				a.Tokens(nil, prose)
			}
		})
	}
}

// BenchmarkHostile has texts of 16 MB that are made to take long.
func BenchmarkHostile(b *testing.B) {
	const size = 16 << 20
	for _, c := range []struct{ name, definition, text string }{
		{"one word", `tokenizer: {type: "standard"}`, "a"},
		{"one long word", `tokenizer: {type: "standard"}`, "ä"},
		{"marks", `tokenizer: {type: "standard"}`, "\u0301"},
		{"thai", `tokenizer: {type: "standard"}`, "ส"},
		{"words", `tokenizer: {type: "standard"}`, "a "},
		{"flags", `tokenizer: {type: "standard"}`, "🇩"},
		{"joiners", `tokenizer: {type: "standard"}`, "\u200d"},
		{"tags", `charFilters: [{type: "htmlStrip"}], tokenizer: {type: "standard"}`, `<a "`},
		{"comments", `charFilters: [{type: "htmlStrip"}], tokenizer: {type: "standard"}`, "<!--"},
		{"entities", `charFilters: [{type: "htmlStrip"}], tokenizer: {type: "standard"}`, "&amp;"},
		{"mapping", `charFilters: [{type: "mapping", mappings: {a: "bcdefghijklmnopqrst"}}], tokenizer: {type: "standard"}`, "a"},
		{"normal", `charFilters: [{type: "icuNormalize"}], tokenizer: {type: "standard"}`, "e\u0301\u0302"},
		{"grams", `tokenizer: {type: "nGram", minGram: 1, maxGram: 1000}`, "a"},
		{"large grams", `tokenizer: {type: "nGram", minGram: 30000, maxGram: 30000}, tokenFilters: [{type: "lowercase"}]`, "A"},
		{"no grams", `tokenizer: {type: "nGram", minGram: 1000000000, maxGram: 2000000000}`, "A"},
		{"whole", `tokenizer: {type: "keyword"}, tokenFilters: [{type: "keywordRepeat"}, {type: "keywordRepeat"}, {type: "keywordRepeat"}, {type: "keywordRepeat"}, {type: "lowercase"}]`, "A"},
		{"duplicates", `tokenizer: {type: "whitespace"}, tokenFilters: [{type: "edgeGram", minGram: 1, maxGram: 255}, {type: "removeDuplicates"}]`, "abcdefghijklmnop "},
		{"repeated", `tokenizer: {type: "standard"}, tokenFilters: [{type: "keywordRepeat"}, {type: "keywordRepeat"}, {type: "shingle", minShingleSize: 2, maxShingleSize: 100}]`, "abcdefgh "},
		{"stems", `baseAnalyzer: "lucene.english", stopwords: []`, "ational"},
	} {
		a, err := custom(c.definition)
		if err != nil {
			b.Fatal(err)
		}
		text := strings.Repeat(c.text, size/len(c.text))
		b.Run(c.name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				a.Tokens(nil, text)
			}
		})
	}
}
