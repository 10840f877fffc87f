package textsearch

import (
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/ebbdb/ebb/internal/bson"
)

// benchText is a text of n words, of which few are common and many are rare, as in languages.
func benchText(r *rand.Rand, n int) string {
	const syllables = "ka ter in ing mo ved ation li er s per ness for ou able re un ted"
	parts := strings.Fields(syllables)
	zipf := rand.NewZipf(r, 1.1, 4, 20_000)
	var b strings.Builder
	for range n {
		word := rand.New(rand.NewPCG(zipf.Uint64(), 1))
		for range 2 + word.IntN(2) {
			b.WriteString(parts[word.IntN(len(parts))])
		}
		b.WriteByte(' ')
	}
	return b.String()
}

// BenchmarkTerms weighs the words of documents of about 300 bytes; cold is one whose words are all new.
func BenchmarkTerms(b *testing.B) {
	r := rand.New(rand.NewPCG(1, 2))
	var docs []bson.Doc
	for range 1000 {
		docs = append(docs, bson.Build().String("a", benchText(r, 40)).Doc())
	}
	run := func(b *testing.B, spec func() *Spec) {
		s := spec()
		var terms []Term
		b.ReportAllocs()
		for i := range b.N {
			if i%len(docs) == 0 {
				s = spec()
			}
			var err error
			if terms, err = s.Terms(terms[:0], docs[i%len(docs)], math.MaxInt); err != nil {
				b.Fatal(err)
			}
		}
	}
	for _, language := range []string{"english", "none", "russian", "german"} {
		s := NewSpec(bson.MustDoc(`{a: 1}`), Find(language), "language")
		b.Run(language, func(b *testing.B) { run(b, func() *Spec { return s }) })
	}
	b.Run("english/cold", func(b *testing.B) {
		run(b, func() *Spec { return NewSpec(bson.MustDoc(`{a: 1}`), Find("english"), "language") })
	})
}

// BenchmarkLongWords stems words as long as they are stemmed, which nobody should be able to make slow; ns/B is for each
// byte of the text.
func BenchmarkLongWords(b *testing.B) {
	for _, word := range []string{"a", "aб", "ingiveness", "yses", "ated"} {
		for _, language := range []string{"english", "french", "hungarian", "norwegian", "russian", "spanish", "swedish"} {
			text := strings.Repeat(word, maxStemmedBytes/len(word))
			b.Run(language+"/"+word, func(b *testing.B) {
				b.SetBytes(int64(len(text)))
				for range b.N {
					Find(language).stemmed(text)
				}
			})
		}
	}
}
