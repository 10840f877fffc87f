package textsearch

import (
	"sync"
	"unicode"
	"unicode/utf8"

	"github.com/blevesearch/snowballstem"
	"golang.org/x/text/unicode/rangetable"
)

// Form is which differences between words count.
type Form uint8

// The forms; none of them is what an index holds.
const (
	KeepCase       Form = 1 << iota // Word and word are two
	KeepDiacritics                  // é and e are two
	KeepStopWords                   // the most common words of the language are there too
)

const (
	// maxStemmedBytes is the longest word that is stemmed; no language has one.
	maxStemmedBytes = 1 << 10
	// maxCachedBytes is the longest word whose stem is remembered, maxCached how many are.
	maxCachedBytes = 32
	maxCached      = 1 << 15
)

// separators are the runes beyond ASCII that part words.
var separators = sync.OnceValue(func() *unicode.RangeTable {
	return rangetable.Merge(unicode.White_Space, unicode.Dash, unicode.Hyphen, unicode.Quotation_Mark,
		unicode.Terminal_Punctuation, unicode.Pattern_Syntax, unicode.Sentence_Terminal)
})

func (l *Language) separates(r rune) bool {
	switch {
	case r >= utf8.RuneSelf:
		return unicode.Is(separators(), r)
	case r == '\'':
		return !l.english
	case r == 0:
		return true
	}
	return r <= ' ' && unicode.IsSpace(r) || r > ' ' && r < 0x7f && r != '_' && !alphanumeric(r)
}

func alphanumeric(r rune) bool {
	return 'a' <= r && r <= 'z' || 'A' <= r && r <= 'Z' || '0' <= r && r <= '9'
}

// words reads the words of a text, one after another.
type words struct {
	*Language
	form Form
	rest string

	folded []byte
	bare   []byte
	// known are the words that index has met lately, by language, as they are in lower case.
	known map[*Language]map[string]known
}

// known is what became of a word.
type known struct {
	term string
	stop bool
}

// start makes w read text.
func (w *words) start(l *Language, text string, form Form) {
	w.Language, w.rest, w.form = l, text, form
}

// next is the next word as the form has it.
func (w *words) next() (term string, ok bool) {
	for {
		word := w.cut()
		if word == "" {
			return "", false
		}
		w.folded = w.appendFolded(w.folded[:0], word, KeepDiacritics)
		var k known
		if w.form&(KeepCase|KeepDiacritics) == 0 {
			k = w.look()
		} else {
			k = w.shape(word)
		}
		if !k.stop || w.form&KeepStopWords != 0 {
			return k.term, true
		}
	}
}

// cut takes the next word off the text as it stands there.
func (w *words) cut() string {
	text := w.rest
	start := 0
	for i, r := range text {
		separates := w.separates(r)
		switch {
		case separates && i == start:
			start = i + utf8.RuneLen(r)
		case separates:
			w.rest = text[i:]
			return text[start:i]
		}
	}
	w.rest = ""
	return text[start:]
}

// look finds the folded word among those known, or makes it known.
func (w *words) look() known {
	of := w.known[w.Language]
	if k, found := of[string(w.folded)]; found {
		return k
	}
	word := string(w.folded)
	k := w.shape(word)
	if len(word) <= maxCachedBytes {
		if of == nil {
			if w.known == nil {
				w.known = map[*Language]map[string]known{}
			}
			of = map[string]known{}
			w.known[w.Language] = of
		}
		if len(of) >= maxCached {
			clear(of)
		}
		of[word] = k
	}
	return k
}

// shape makes the term of a word: stop words and stems are told with diacritics, which go last.
func (w *words) shape(word string) known {
	_, stop := w.stop[string(w.folded)]
	if w.form&KeepCase == 0 {
		word = w.stemmed(string(w.folded))
	} else {
		word = w.stemmedCased(word, string(w.folded))
	}
	if w.form&KeepDiacritics == 0 {
		w.bare = w.appendFolded(w.bare[:0], word, KeepCase)
		if string(w.bare) != word {
			word = string(w.bare)
		}
	}
	return known{word, stop}
}

// stemmed is the stem of a word in lower case.
func (l *Language) stemmed(word string) string {
	if l.stem == nil || len(word) > maxStemmedBytes {
		return word
	}
	env := snowballstem.NewEnv(word)
	l.stem(env)
	return env.Current()
}

// stemmedCased is the stem of a word that keeps its case. Stemmers know small letters only, so a capital at the end is not
// taken away.
func (l *Language) stemmedCased(word, lower string) string {
	stem := l.stemmed(lower)
	same := 0
	for same < len(stem) && same < len(lower) && stem[same] == lower[same] {
		same++
	}
	if len(word) != len(lower) || word[same:] != lower[same:] {
		return word
	}
	return word[:same] + stem[same:]
}
