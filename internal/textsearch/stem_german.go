package textsearch

import "strings"

const germanVowels = "aeiouyäöü"

// stemGerman is Snowball's stemmer for German in the version of libstemmer 2.
func stemGerman(word string, _ bool) string {
	letters := []rune(strings.ReplaceAll(word, "ß", "ss"))
	between := func(i int) bool {
		return i > 0 && i+1 < len(letters) && strings.ContainsRune(germanVowels, letters[i-1]) && strings.ContainsRune(germanVowels, letters[i+1])
	}
	for i, r := range letters {
		if (r == 'u' || r == 'y') && between(i) {
			raise(letters, i)
		}
	}
	s := newStemming(letters, germanVowels)
	s.germanCase()
	s.germanDegree()
	s.germanDerivation()
	return strings.NewReplacer("ä", "a", "ö", "o", "ü", "u").Replace(s.lowered())
}

func (s *stemming) germanCase() {
	switch ending, at := s.longest(0, "em", "ern", "er", "e", "en", "es", "s"); {
	case at < s.r1:
	case ending == "s":
		if s.is(at-1, "bdfghklmnrt") {
			s.cut(at)
		}
	default:
		s.cut(at)
		if (ending == "e" || ending == "en" || ending == "es") && s.at("niss") >= 0 {
			s.cut(at - 1)
		}
	}
}

func (s *stemming) germanDegree() {
	switch ending, at := s.longest(0, "en", "er", "est", "st"); {
	case at < s.r1:
	case ending != "st" || at > 3 && s.is(at-1, "bdfghklmnt"):
		s.cut(at)
	}
}

func (s *stemming) germanDerivation() {
	ending, at := s.longest(0, "end", "ung", "ig", "ik", "isch", "lich", "heit", "keit")
	if at < 0 || at < s.r2 {
		return
	}
	switch ending {
	case "end", "ung":
		s.cut(at)
		if ig := s.at("ig"); ig >= s.r2 && !s.is(ig-1, "e") {
			s.cutIn(s.r2, "ig")
		}
	case "ig", "ik", "isch":
		if !s.is(at-1, "e") {
			s.cut(at)
		}
	case "lich", "heit":
		s.cut(at)
		if !s.cutIn(s.r1, "er") {
			s.cutIn(s.r1, "en")
		}
	case "keit":
		s.cut(at)
		if !s.cutIn(s.r2, "lich") {
			s.cutIn(s.r2, "ig")
		}
	}
}
