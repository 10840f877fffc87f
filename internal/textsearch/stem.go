package textsearch

import (
	"slices"
	"strings"
)

// stemming is a word on its way to its stem by an algorithm of Snowball's, see https://snowballstem.org/algorithms. Its two
// regions are what is behind the first consonant that follows a vowel, and the same again in there: endings are taken away
// within one of them.
type stemming struct {
	word   []rune
	vowels string
	r1, r2 int
}

// newStemming finds the regions of word. The first begins behind three letters at least.
func newStemming(word []rune, vowels string) *stemming {
	s := &stemming{word: word, vowels: vowels}
	r1 := s.region(0)
	s.r2 = s.region(r1)
	s.r1 = max(r1, 3)
	return s
}

func (s *stemming) region(from int) int {
	for i := from + 1; i < len(s.word); i++ {
		if s.isVowel(i-1) && !s.isVowel(i) {
			return i + 1
		}
	}
	return len(s.word)
}

func (s *stemming) isVowel(i int) bool { return s.is(i, s.vowels) }

// is says whether the letter at i is there, and one of those.
func (s *stemming) is(i int, letters string) bool {
	return i >= 0 && i < len(s.word) && strings.ContainsRune(letters, s.word[i])
}

// at is where ending begins when the word ends with it, or -1.
func (s *stemming) at(ending string) int {
	e := []rune(ending)
	if at := len(s.word) - len(e); at >= 0 && slices.Equal(s.word[at:], e) {
		return at
	}
	return -1
}

// longest is the longest of the endings that the word has from region on, and where it begins; -1 for none.
func (s *stemming) longest(region int, endings ...string) (ending string, at int) {
	at = -1
	for _, e := range endings {
		if found := s.at(e); found >= 0 && (at < 0 || found < at) && found >= region {
			ending, at = e, found
		}
	}
	return ending, at
}

func (s *stemming) cut(at int) { s.word = s.word[:at] }

// cutIn takes ending away if it lies in the region, and says whether it did.
func (s *stemming) cutIn(region int, ending string) bool {
	at := s.at(ending)
	if at < max(region, 0) {
		return false
	}
	s.cut(at)
	return true
}

// raise puts a letter into upper case, where it is no vowel.
func raise(word []rune, i int) { word[i] -= 'a' - 'A' }

// lowered is the word with those letters as they were.
func (s *stemming) lowered() string { return strings.ToLower(string(s.word)) }
