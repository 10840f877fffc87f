package analysis

import (
	"hash/maphash"
	"strings"
	"sync"
)

const (
	// rememberedStems is how many stems one that stems remembers, a power of two.
	rememberedStems = 2048
	// maxRemembered is how long a word is at most that is remembered.
	maxRemembered = 32
)

// remembered are stems that were found last: texts have the same words again and again, and a search stems those of a whole collection. A word
// has one place, from which another one drives it away.
type remembered [rememberedStems]struct{ word, stem string }

// stems changes the term of each token that may be stemmed.
func stems(stem func(string) string) filter {
	seed := maphash.MakeSeed()
	pool := sync.Pool{New: func() any { return new(remembered) }}
	return func(tokens []Token) []Token {
		known := pool.Get().(*remembered)
		defer pool.Put(known)
		for i := range tokens {
			t := &tokens[i]
			switch {
			case t.keyword:
			case len(t.Term) > maxRemembered:
				t.Term = stem(t.Term)
			default:
				at := &known[maphash.String(seed, t.Term)%rememberedStems]
				if at.word != t.Term {
					at.word = strings.Clone(t.Term) // not with the text that it is of
					at.stem = stem(at.word)
				}
				t.Term = at.stem
			}
		}
		return tokens
	}
}
